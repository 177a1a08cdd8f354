"""Command lines of the pages: which programs they call, and what of them is checked without running them."""

import re
import shlex
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import botocore.session
from botocore import xform_name
from botocore.exceptions import UnknownServiceError

from leeward.cli.main import parse_arguments
from leeward.errors import LeewardError

SHELLS = {"", "bash", "sh", "console"}
MAKEFILE = Path("Makefile").read_text()
TARGETS = set(re.findall(r"(?m)^([a-z-]+):", MAKEFILE))
ON_AN_ACCOUNT = {"deploy", "account-test"}  # of make
KUBECTL = {"annotate", "apply", "config", "cordon", "delete", "describe", "get", "kustomize", "label", "patch", "wait"}
CDK = {"bootstrap", "deploy", "destroy", "diff", "synth"}
AWS_OPTIONS = {"output", "profile", "query", "region", "cli-input-json", "no-cli-pager"}
AWS_OPTIONS |= {"kubernetes-version"}  # the CLI's name for `version` of EKS, because --version is its own
AWS_OWN = {  # commands of the AWS CLI that are no calls of the API, or have options of their own
    ("cloudformation", "deploy"),
    ("ec2", "authorize-security-group-ingress"),
    ("eks", "update-kubeconfig"),
    ("logs", "tail"),
    ("s3", "cp"),
    ("s3", "rm"),
}
LOCAL = {".", "cd", "cp", "echo", "export", "git", "mkdir", "pip", "pipx", "python3", "sha256sum", "source"}
ACCOUNT = {"aws", "cdk", "eksctl", "helm", "kubectl", "terraform"}
LIVE = {"doctor", "pause", "resume", "uninstall", "init"}  # of leeward, unless a folder is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One command: a program with its words, and what its page shows below it."""

    where: str
    text: str
    words: tuple[str, ...]
    shown: tuple[str, ...] = ()

    @property
    def program(self):
        return Path(self.words[0]).name or self.words[0]

    @property
    def leeward(self):
        """The arguments of `leeward`, however it is called; None for another program."""
        if self.program in {"leeward", "kubectl-leeward"}:
            return self.words[1:]
        return self.words[2:] if self.words[:2] == ("kubectl", "leeward") else None

    @property
    def known(self):
        return self.leeward is not None or self.program in {*LOCAL, *ACCOUNT, *CHECKS}

    @property
    def needs_account(self):
        if self.leeward is not None:
            verb = self.leeward[0] if self.leeward else "help"
            return "--cluster" in self.leeward or (verb in LIVE and "--snapshot" not in self.leeward)
        if self.program == "make":
            return bool(ON_AN_ACCOUNT & set(self.words))
        return self.program in ACCOUNT and self.words[:2] not in {("cdk", "synth"), ("kubectl", "kustomize")}


def commands(block):
    """The commands of a block. In a console block they follow a prompt, and the lines below are their output."""
    console, pending, start = block.language == "console", [], ""
    for text in [*block.text.replace("\\\n", " ").splitlines(), None]:
        if console and text is not None and not text.startswith("$ "):
            pending.append(text)
            continue
        if start:
            yield from lines(block.where, start, tuple(pending))
        start, pending = ("" if text is None else text.removeprefix("$ ")), []


def lines(where, text, shown=()):
    """Each program of a pipeline or a sequence is a command of its own."""
    for words in split(text):
        if words:
            yield Line(where=where, text=text, words=tuple(words), shown=shown)


def split(text):
    """The words of each command, without redirections, and without variables before the program."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    parts, skip = [[]], False
    for word in lexer:
        if set(word) <= set("|&;()"):
            parts.append([])
        elif set(word) <= set("<>"):
            skip = True
        elif skip:
            skip = False
        elif not parts[-1] and re.fullmatch(r"[A-Z_]+=.*", word):
            continue
        else:
            parts[-1].append(word)
    return parts


def mistake(line):
    """Return the mistake in a command as a sentence, empty without one."""
    if line.leeward is not None:
        return of_leeward(line.leeward)
    if line.program in CHECKS:
        return CHECKS[line.program](line.words[1:])
    return "" if line.known else f"unknown program {line.program}"


def of_leeward(arguments):
    """The real parser reads it. Capitals stand for a name; a value that must be a number is one."""
    try:
        parse_arguments(list(arguments) or ["help"])
    except LeewardError as error:
        return str(error)
    except SystemExit:  # --help, --version
        return ""
    return ""


def of_make(words):
    targets = [word for word in words if "=" not in word]
    known = " ".join(recipe(target) for target in targets)
    unknown = [target for target in targets if target not in TARGETS]
    variables = [word.partition("=")[0] for word in words if "=" in word]
    unknown += [name for name in variables if not re.search(rf"(?<![A-Z_]){name}(?![A-Z_])", known)]
    return f"make does not know {', '.join(unknown)}" if unknown else ""


def recipe(target):
    """Text of a target's rule, with the definitions of the variables that it uses."""
    found = re.search(rf"(?m)^{re.escape(target)}:.*\n(?:\t.*\n)*", MAKEFILE)
    text = found[0] if found else ""
    used = re.findall(r"\$\(([A-Z]+)\)", text)
    return "\n".join([text, *re.findall(rf"(?m)^(?:{'|'.join(used) or '-'}) [?:]?=.*$", MAKEFILE)])


def of_python(words):
    if words[:1] == ("-m",):
        if words[1] == "pytest":
            return of_paths(words[2:])
        return "" if find_spec(words[1]) else f"there is no module {words[1]}"
    return of_paths(words)


def of_paths(words):
    missing = [word for word in words if "/" in word and not word.startswith("-") and not Path(word).exists()]
    return f"there is no {', '.join(missing)}" if missing else ""


def of_kubectl(words):
    if words[0] not in KUBECTL:
        return f"kubectl does not know {words[0]}"
    files = [word for flag, word in pairwise(words) if flag == "-f"]
    return of_paths(file for file in files if not file.startswith(("http", "-", "build/")))


def of_cdk(words):
    return "" if words[0] in CDK else f"the CDK does not know {words[0]}"


@cache
def service(name):
    return botocore.session.get_session().get_service_model(name)


def of_aws(words):
    """The service, the operation and each option are those of AWS's API, by botocore's model."""
    name, operation, *rest = words
    if (name, operation) in AWS_OWN:
        return ""
    try:
        model = service(name)
    except UnknownServiceError:
        return f"AWS has no service {name}"
    known = {xform_name(one).replace("_", "-"): one for one in model.operation_names}
    if operation not in known:
        return f"{name} has no operation {operation}"
    shape = model.operation_model(known[operation]).input_shape
    members = {xform_name(member).replace("_", "-") for member in (shape.members if shape else {})} | AWS_OPTIONS
    options = [word[2:] for word in rest if word.startswith("--")]
    unknown = [option for option in options if option not in members and option.removeprefix("no-") not in members]
    return f"{name} {operation} has no option {', '.join(unknown)}" if unknown else ""


CHECKS = {
    "aws": of_aws,
    "cdk": of_cdk,
    "kubectl": of_kubectl,
    "make": of_make,
    "pytest": of_paths,
    "python": of_python,
}
