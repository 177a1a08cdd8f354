"""Unit tests reach no network: only the folders named here may open a connection."""

import gc
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import HealthCheck, settings

import leeward
from local.aws.process import LocalAws, running
from tests import workers
from tests.local.cluster.kubectl import binaries, version_of
from tests.tools import INSTALL

gc.disable()  # until everything is imported and collected: millions of objects, all of which stay

# How fast the machine is decides no test: neither an example's time nor that of making one is a failure.
# The same commit tries the same inputs, so that a failure is the change's. `make test-long` takes the profile
# `new-inputs`, whose inputs follow from the seed that it prints.
settings.register_profile(
    "leeward", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, print_blob=True
)
settings.register_profile("new-inputs", settings.get_profile("leeward"), derandomize=False)
settings.load_profile("leeward")


def syntax_when_asked(name: str) -> ModuleType:
    """The module that jsonschema asks about IRIs, which builds 38 parsers when it is imported: two seconds in each
    worker. This one imports it when the first IRI is asked about.
    """
    module = ModuleType(name)

    def is_valid_syntax(*arguments: Any) -> bool:
        if sys.modules.get(name) is module:
            del sys.modules[name]
        return bool(import_module(name).is_valid_syntax(*arguments))

    module.is_valid_syntax = is_valid_syntax  # type: ignore[attr-defined]
    return module


sys.modules.setdefault("rfc3987_syntax", syntax_when_asked("rfc3987_syntax"))


def pytest_configure(config: pytest.Config) -> None:
    """Without the long forms the CDK does not hold each template against CloudFormation's schemas: six seconds in each
    process that synthesizes. `tests/infra/test_app.py` does so in each run, cfn-lint for the kinds that are drawn.
    """
    if config.option.markexpr == "not long":
        os.environ["CDK_VALIDATION"] = "false"


def pytest_report_header() -> list[str]:
    """Which real kubectl the tests will use as a second client."""
    found = [f"{path.name} {version_of(path)}" for path in binaries()]
    return [f"kubectl: {', '.join(found) or f'none found, {INSTALL}'}"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """A worker that collects everything begins with a share of its own."""
    config = session.config
    if hasattr(config, "workerinput") and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        files = sorted((config.rootpath / "tests").rglob("test_*.py"))
        config.args = workers.shares_of_reading(
            files, config.workerinput["workerid"], config.workerinput["workercount"]
        )


def pytest_collection_finish() -> None:
    """Import the modules that the product imports late: one that is first imported while a test has broken a name
    keeps the broken one for every later test. Then exclude all that is imported from garbage collection, and collect
    less often: few objects are in cycles.
    """
    for module in walk_packages(leeward.__path__, "leeward."):
        if not module.name.startswith("leeward.handlers."):  # those make their clients
            import_module(module.name)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a worker the long rooms come first."""
    if hasattr(config, "workerinput"):
        workers.in_turn(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> workers.RoomByRoom:
    """Rooms, not single tests, go to the workers."""
    config.option.loadscopereorder = False  # the order is that of `in_turn`, not the number of tests
    return workers.RoomByRoom(config, log)


@pytest.fixture(scope="session", autouse=True)
def _service_models_are_parsed_once() -> Iterator[None]:
    """botocore parses a service's model for each session, a tenth of a second each; many tests make sessions.

    Clients of one session share what was parsed, so it is read only.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", parsed_once(JSONFileLoader.load_file))
        yield


def parsed_once(load: Callable[[JSONFileLoader, str], Any]) -> Callable[[JSONFileLoader, str], Any]:
    """Remember each file by its whole path, and no file that is missing."""
    files: dict[str, Any] = {}

    def load_file(loader: JSONFileLoader, path: str) -> Any:
        if path not in files and (content := load(loader, path)) is not None:
            files[path] = content
        return files.get(path)

    return load_file


@pytest.fixture(scope="session")
def local_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    """One local AWS for all tests that make what they need under names of their own."""
    with running(tmp_path_factory.mktemp("aws")) as local:
        yield local


CONNECTED = ("tests/local/", "tests/adapters/", "tests/contract/", "tests/infra/")


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection from any other test is an error that names it."""
    if request.node.nodeid.startswith(CONNECTED):
        return

    connect = socket.socket.connect

    def refuse(connecting: socket.socket, address: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            connect(connecting, address)  # the local stack of other tests keeps itself up to date
            return
        raise AssertionError(f"{request.node.nodeid} opens a connection to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
