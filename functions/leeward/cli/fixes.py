"""Commands within sentences: those of fixes on lines of their own, and none of them on two lines, so that they can be
copied.

Decides where a command ends in a sentence: at punctuation, or at a word that only prose has. Each is printed once: the
sentence names it by its place."""

import re
from collections.abc import Iterator

from leeward.cli.fitting import Copied, wrapped

# A drain terminates its node: a sentence names it, but it is no fix.
_ANY_COMMAND = r"(?<![\w.-])(?:kubectl|aws|leeward|cdk|make) "
_TOOLS = f"{_ANY_COMMAND}(?!drain )"
_WHOLE = str.maketrans({" ": "\0", ",": "\1"})  # after which a line may end
_APART = str.maketrans({"\0": " ", "\1": ","})
_TOKEN = re.compile(r"""(?:'[^']*'|"[^"]*"|<[^>]*>|[^\s'"])+""")
_PROSE_WORDS = (
    "a again allows also an and answers ask are as at before by can checks continues do does ends explains for from "
    "gives has have in is it lets names not of on once opens or otherwise puts removes rolls says shows so switches "
    "take takes tell tells than that the then there to until was what when where which while with without writes"
)
_PROSE = frozenset(_PROSE_WORDS.split())
_END = ",;:)."
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def commands_in(sentence: str, tools: str = _TOOLS) -> Iterator[str]:
    """Yield the commands of a sentence, each with a verb at least."""
    for start in re.finditer(tools, sentence):
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
    """Return the sentence, in which each command is named by its place, then each command on a line of its own."""
    commands = list(dict.fromkeys(commands_in(sentence)))[: len(_ORDINALS)]
    names = {
        command: f"the {f'{ordinal} ' if len(commands) > 1 else ''}command below"
        for command, ordinal in zip(commands, _ORDINALS, strict=False)
    }
    for command in sorted(commands, key=len, reverse=True):  # a command may begin as another does
        sentence = sentence.replace(command, names[command])
    return [f"{about}: {sentence}", *(copied(command) for command in commands)]


def sentence_lines(text: str, width: int) -> list[str]:
    """Return the visible text in lines of a terminal: no word and no command stands on two of them."""
    for command in sorted(commands_in(text, _ANY_COMMAND), key=len, reverse=True):
        text = text.replace(command, command.translate(_WHOLE))
    return [row.translate(_APART) for line in text.split("\n") for row in wrapped(line, width)]


def copied(command: str) -> Copied:
    """Return the line of a command below its sentence."""
    return Copied(f"  {command}")
