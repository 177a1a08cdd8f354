"""Commands within the sentences of fixes, on lines of their own, so that they can be copied.

Decides where a command ends in a sentence: at punctuation, or at a word that only prose has."""

import re
from collections.abc import Iterator

# A drain terminates its node: a sentence names it, but it is no fix.
_TOOLS = r"(?<![\w.-])(?:kubectl|aws|leeward|cdk|make) (?!drain )"
_TOKEN = re.compile(r"""(?:'[^']*'|"[^"]*"|<[^>]*>|[^\s'"])+""")
_PROSE_WORDS = (
    "a again allows also an and answers ask are as at before by can checks continues do does ends explains for from "
    "gives has have in is it lets names not of on once opens or otherwise puts removes rolls says shows so switches "
    "take takes tell tells than that the then there to until was what when where which while with without writes"
)
_PROSE = frozenset(_PROSE_WORDS.split())
_END = ",;:)."


def commands_in(sentence: str) -> Iterator[str]:
    """Yield the commands of a sentence, each with a verb at least."""
    for start in re.finditer(_TOOLS, sentence):
        words = [start[0].strip()]
        for token in _TOKEN.finditer(sentence, start.end()):
            word = token[0].rstrip(_END)
            prose = word in _PROSE and words[-1] != "-n"  # a namespace may have any name
            if not word or prose or token[0].startswith("("):
                break
            words.append(word)
            if word != token[0]:
                break
        if len(words) > 2:
            yield " ".join(words)


def fix_lines(about: str, sentence: str) -> list[str]:
    """Return the sentence, then each of its commands on a line of its own."""
    return [f"{about}: {sentence}", *(f"  {command}" for command in dict.fromkeys(commands_in(sentence)))]
