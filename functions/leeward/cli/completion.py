"""`leeward completion bash|zsh|fish`: a script that completes commands, actions, options and their values.

Decides what is completed, from the parsers alone: names of nodes and groups are not looked up, and where one stands
nothing is offered. Paths are left to the shell's own completion, which quotes them: a name may hold blanks, or a
command substitution that the shell would run if it were inserted raw. The script needs nothing that the bash of macOS
(3.2) lacks: no `mapfile`, and without `compopt` it offers paths beside a name."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

DESCRIPTION = """Prints a completion script for a shell. Run it again after an update of Leeward."""
FILES = ("--snapshot", "--to", "--record", "--validate")  # their values are paths
FILE_ARGUMENTS = ("FILE", "EXECUTION|RECORD")  # metavars of arguments that may be paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Completions after the words of a command. `next`: commands or actions with their help; `values` by option;
    `free`: options whose value is not known here, such as a name; `files`: whether it takes paths.
    """

    next: Mapping[str, str]
    options: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]
    free: frozenset[str]
    files: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help=", ".join(SCRIPTS))


def run(arguments: argparse.Namespace) -> int:
    """Print the script and return 0."""
    from leeward.cli.main import build_parser  # late: that module runs this one

    print(SCRIPTS[arguments.shell](dict(words_of(build_parser()))), end="")
    return 0


def words_of(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, Words]]:
    """Yield the completions of the parser and of every parser below it, by the words before: `upgrade start`."""
    following: dict[str, str] = {}
    below: list[tuple[str, argparse.ArgumentParser]] = []
    options: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            following = {one.dest: one.help or "" for one in action._choices_actions}
            below = list(action.choices.items())
        elif action.help is not argparse.SUPPRESS:
            options |= dict.fromkeys(action.option_strings, action.help or "")
            if chosen := _values(action):
                values |= dict.fromkeys(action.option_strings, chosen)
                if not action.option_strings:
                    following = dict.fromkeys(chosen, "")
    files = any(not action.option_strings and action.metavar in FILE_ARGUMENTS for action in parser._actions)
    valued = {name for action in parser._actions if action.nargs is None for name in action.option_strings}
    free = frozenset(valued & options.keys() - values.keys() - {*FILES})
    yield path, Words(next=following, options=options, values=values, free=free, files=files)
    for name, subparser in below:
        yield from words_of(subparser, f"{path} {name}".strip())


def _values(action: argparse.Action) -> tuple[str, ...]:
    """Return the closed set of an option's or argument's values, empty where it takes others too."""
    from leeward.cli.main import COMMANDS
    from leeward.upgrade.preflight.findings import Code

    if action.dest == "override":
        return tuple(code.value for code in Code)
    if action.dest == "command" and not action.option_strings:  # of help
        return tuple(COMMANDS)
    return tuple(map(str, action.choices or ()))


def bash(words: Mapping[str, Words]) -> str:
    """Return the script for bash."""
    rows = "\n".join(
        f"        {shlex.quote(path)}) words={shlex.quote(' '.join([*one.next, *one.options]))} ;;"
        for path, one in words.items()
    )
    values = "\n".join(
        f"        {shlex.quote(f'{path} {option}'.strip())}) words={shlex.quote(' '.join(chosen))} ;;"
        for path, one in words.items()
        for option, chosen in one.values.items()
    )
    free = "|".join(
        shlex.quote(f"{path} {option}".strip()) for path, one in words.items() for option in sorted(one.free)
    )
    paths = "|".join(shlex.quote(f"{path} {name}") for path, one in words.items() if one.files for name in one.next)
    known = "|".join(shlex.quote(path) for path in words if path)
    return f"""# leeward completion for bash: source it, or put it into /etc/bash_completion.d
_leeward() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} asked="" words="" word
    for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD-1))}}"; do
        case "${{asked:+$asked }}$word" in
        {known}) asked="${{asked:+$asked }}$word" ;;
        esac
    done
    COMPREPLY=()
    case "$previous" in
    {"|".join(FILES)}) return ;;  # nothing here, so that -o default completes a path, quoted
    esac
    case "${{asked:+$asked }}$previous" in
    {free}) compopt +o default 2>/dev/null; return ;;  # a name: no option stands here, and no path
    {paths}) [[ $current == -* ]] || return ;;  # a path
{values}
    esac
    if [[ -z $words ]]; then
        case "$asked" in
{rows}
        esac
    fi
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _leeward leeward
"""


def zsh(words: Mapping[str, Words]) -> str:
    """Return the script for zsh, which completes by the functions of bash."""
    return f"#compdef leeward\nautoload -U +X bashcompinit && bashcompinit\n{bash(words)}"


def fish(words: Mapping[str, Words]) -> str:
    """Return the script for fish: one line for each word."""
    lines = ["# leeward completion for fish", "complete -c leeward -f"]
    for path, one in words.items():
        named = path.split()
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in named)
        others = " ".join(name for name in one.next if name not in named)
        unseen = f"not __fish_seen_subcommand_from {others}" if others else ""
        for name, explanation in one.next.items():
            when = "; and ".join(part for part in (seen, unseen) if part)
            lines.append(f"complete -c leeward -n {_fish(when)} -a {name} -d {_fish(explanation)}")
        if one.files:
            lines.append(f"complete -c leeward -n {_fish(seen)} -F")
        for option, explanation in one.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            taken = f" -x -a {_fish(' '.join(one.values[option]))}" if option in one.values else ""
            taken = " -x" if option in one.free else taken
            files = " -r -F" if option in FILES else ""
            when = f"-n {_fish(seen)} " if seen else ""
            lines.append(f"complete -c leeward {when}{flag}{taken}{files} -d {_fish(explanation)}")
    return "\n".join(lines) + "\n"


def _fish(text: str) -> str:
    """Return the text in fish's single quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: Mapping[str, Callable[[Mapping[str, Words]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
