"""Parser of the command line: argparse with one sentence for each mistake, and help in the width of the terminal.

Decides how a mistake is worded and which name was probably meant."""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from leeward.cli.nearest import did_you_mean
from leeward.cli.options import GENERAL
from leeward.errors import InvalidInputError

MOST_LISTED = 12  # names that are listed beside the one that was probably meant
WIDEST = 120  # columns of a help text
EXAMPLES = "examples:"
SEE_OPTIONS = "leeward options shows the options that every command takes, such as --cluster, --snapshot and -o."
OTHER_NAMES: Mapping[str, str] = {
    "apply": "policy apply",
    "consolidate": "plan",
    "cancel": "drain --cancel",
    "cordon": "drain --keep",
    "delete": "drain",
    "describe": "blockers",
    "evict": "drain",
    "explain": "inspect explain-event",
    "get": "top",
    "list": "top",
    "logs": "report",
    "ls": "top",
    "nodes": "top",
    "replace": "drain",
    "rollback": "upgrade rollback",
    "rollout": "upgrade",
    "nodegroup": "start",
    "nodegroups": "start",
    "uncordon": "drain --cancel",
    "unpause": "resume",
    "start": "upgrade start",
    "status": "upgrade status",
    "stop": "pause",
    "terminate": "drain",
    "validate": "policy validate",
    "--delete-local-data": "--delete-emptydir-data",
    "--undo": "--cancel",
    "--until": "--for",
    "--reason": "--why",
    "--follow": "--watch",
    "--format": "--output",
    "--version": "--kubernetes-version",
    "--selector": "-l",
    "--context": "--profile",
    "--timeout": "--deadline",
    "--all": "",
    "--verbose": "",
    "-v": "--version",
    "--name": "",
    "--namespace": "",
    "--pod-selector": "",
}  # names that kubectl, eksctl and others have, and ours; empty: there is none


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formatter that fits paragraphs to the terminal and leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(EXAMPLES):
            return super()._fill_text(text, width, indent)
        width = min(width, WIDEST)
        return "\n\n".join(
            textwrap.fill(" ".join(part.split()), width, initial_indent=indent, subsequent_indent=indent)
            for part in text.split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """argparse parser that raises instead of printing its usage, and takes no abbreviated options. Its help leaves out
    the general options. `headings`: those of its commands, with the names of each, in the order of the help;
    `elsewhere`: names that are commands below another one, and what to type.
    """

    def __init__(
        self,
        *args: Any,
        headings: Mapping[str, Iterable[str]] | None = None,
        elsewhere: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", HelpFormatter)
        super().__init__(*args, **kwargs)
        self._headings, self._elsewhere = headings or {}, elsewhere or {}

    def format_help(self) -> str:
        """Return the help: description, commands under their headings, own arguments and options, examples."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._own(self._actions), self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        groups = [group for group in self._action_groups if group.title != GENERAL]
        for group in reversed(groups) if self._headings else groups:
            self._add_section(formatter, group)
        formatter.add_text(self.epilog)
        if self._own(self._actions) != self._actions and not self._headings:
            formatter.add_text(SEE_OPTIONS)
        return formatter.format_help()

    def _own(self, actions: Iterable[argparse.Action]) -> list[argparse.Action]:
        general = [action for group in self._action_groups if group.title == GENERAL for action in group._group_actions]
        return [action for action in actions if action not in general]

    def _add_section(self, formatter: argparse.HelpFormatter, group: argparse._ArgumentGroup) -> None:
        """Add a group of arguments; the commands under their headings where there are some."""
        commands = [action for action in group._group_actions if isinstance(action, argparse._SubParsersAction)]
        shown = {one.dest: one for action in commands for one in action._choices_actions}
        sections: Mapping[str, list[argparse.Action]] = {group.title or "": list(group._group_actions)}
        if commands and self._headings:
            sections = {heading: [shown[name] for name in names] for heading, names in self._headings.items()}
        for heading, actions in sections.items():
            formatter.start_section(heading)
            formatter.add_arguments(actions)
            formatter.end_section()

    def error(self, message: str) -> NoReturn:
        """Raise one sentence, for `main` to print."""
        verb = self.prog.removeprefix("leeward").strip()
        raise InvalidInputError(f"{verb}{': ' if verb else ''}{reworded(message)} (see {self.prog} --help)")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all arguments; what is unknown is reported by the command that does not know it, with the option most
        like it.
        """
        self._check_before_command(args or ())
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            command = chosen(self, args or ())
            name = unknown[0].partition("=")[0]
            hint = likely(name, options_of(command)) if name.startswith("-") else ""
            command.error(f"found unknown arguments: {' '.join(unknown)}, expected none{hint}")
        return parsed

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the known arguments. Names may stand on both sides of an option, as for kubectl: argparse itself ends a
        list of names at the first option.
        """
        words = sys.argv[1:] if args is None else args
        return super().parse_known_args(words if below(self) else self._options_first(words), namespace)

    def _options_first(self, words: Sequence[str]) -> list[str]:
        """Return the words with the options and their values before the names. All from an option that is not known,
        or has no value, stay where they are: what follows may be its value.
        """
        options, names, rest = list[str](), list[str](), list(words)
        while rest and rest[0] != "--":
            word = rest[0]
            known = self._option_string_actions.get(word)
            attached = word.partition("=")[0] if word.startswith("--") else word[:2]
            taken = 2 if known is not None and known.nargs is None else 1
            if word == "-" or not word.startswith("-"):
                names.append(rest.pop(0))
            elif (known is None and attached not in self._option_string_actions) or taken > len(rest):
                break
            else:
                options, rest = [*options, *rest[:taken]], rest[taken:]
        return [*options, *names, *rest]

    def _check_before_command(self, words: Sequence[str]) -> None:
        """Check the options before the command: argparse takes the value of an unknown one for the command."""
        commands, known = below(self), options_of(self)
        for before, word in zip(["", *words], words, strict=False):
            name = word.partition("=")[0]
            if word in commands or word == "--" or not (word.startswith("-") or before.startswith("-")):
                return
            given = name if word.startswith("--") else word[:2]  # -o json and -ojson are the same
            if commands and word.startswith("-") and given not in known:
                self.error(f"found unknown arguments: {name}, expected none{likely(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            hint = likely(str(value), [*names, *self._elsewhere])
            for name, whole in self._elsewhere.items():
                hint = hint.replace(f"mean {name}?", f"mean {whole}?")
            allowed = "another one" if hint and len(names) > MOST_LISTED else f"one of {', '.join(names)}"
            raise argparse.ArgumentError(action, f"found {value!r}, expected {allowed}{hint}")


def likely(text: str, known: Sequence[str]) -> str:
    """Return `; did you mean NAME?` with our name of what another tool calls so, else with the name most like it."""
    other = OTHER_NAMES.get(text.lower())
    if other is not None and other.split(" ")[0] in known:
        return f"; did you mean {other}?"
    return "" if other is not None and text.startswith("-") else did_you_mean(text, known)


def chosen(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command and action that the words name, the parser itself where they name none."""
    for word in words:
        parser = below(parser).get(word, parser)
    return parser


def below(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of the commands or actions below this one, by name."""
    choices = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: one for each in choices for name, one in dict(each or {}).items()}


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of the parser and of every parser below it, hidden ones apart."""
    shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    own = [option for action in shown for option in action.option_strings]
    return sorted({*own, *(option for one in below(parser).values() for option in options_of(one))})


def reworded(message: str) -> str:
    """Return argparse's own sentences as found and expected."""
    message = re.sub(r"ignored explicit argument ('.*')$", r"found \1, expected true or false", message)
    message = re.sub(r": expected (one|at least one) argument$", r": found nothing, expected \1 value", message)
    required = re.match(r"^the following arguments are required: (.*)$", message)
    if required is None:
        return message
    return f"found nothing, expected {', '.join(dict.fromkeys(required[1].split(', ')))}"
