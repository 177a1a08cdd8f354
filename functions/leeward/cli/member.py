"""Cluster of another account or Region: the caller's credentials there, and where the deployment knows it to be.

Decides which account and Region --cluster-profile and --cluster-region have to name: those of the deployment's
settings, which its functions have in their environment."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

from leeward.cli.nearest import did_you_mean
from leeward.errors import AccessDeniedError, InvalidInputError, LeewardError
from leeward.isolation import attempt

if TYPE_CHECKING:
    from leeward.adapters.caller import Elsewhere
    from leeward.doctor.facts import CallerIdentity, Served
    from leeward.ports.doctor import DeploymentReader

OPTION = "--cluster-profile"
REFUSED = (
    "the credentials of --cluster-profile are not accepted: log in (aws sso login --profile), or name another profile "
    "of the cluster's account"
)


def profile_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return `profile` as an argument of `leeward.adapters.wiring`, nothing without --profile."""
    return {"profile": arguments.profile} if arguments.profile else {}


def options_of(arguments: argparse.Namespace) -> str:
    """Return the options that name the cluster, for a command to copy: with those of its account and Region."""
    given = {
        "--cluster": arguments.cluster,
        OPTION: arguments.cluster_profile,
        "--cluster-region": arguments.cluster_region,
    }
    return " ".join(f"{option} {shlex.quote(value)}" for option, value in given.items() if value)


def access_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return `profile` and `elsewhere` as arguments of `leeward.adapters.wiring`, nothing without the options. The
    deployment is asked once where the cluster is. Raises InvalidInputError for a cluster that it does not serve, or
    serves in another account or Region than the options name; LeewardError where it cannot be asked.
    """
    if not (arguments.cluster_profile or arguments.cluster_region):
        return profile_of(arguments)
    if arguments.elsewhere is None:
        arguments.elsewhere = _elsewhere(arguments)
    return {**profile_of(arguments), "elsewhere": arguments.elsewhere}


def served_by(deployment: DeploymentReader) -> tuple[Served, ...] | None:
    """Return the clusters that the first readable function names; None where the functions that exist name none. Raises
    the error of the first function where one cannot be read.
    """
    from leeward.doctor import expected  # late: only a live command needs it
    from leeward.doctor.gather import clusters_of, environment

    failed: LeewardError | None = None
    for name in expected.FUNCTIONS:
        answer = attempt(partial(deployment.function, name))
        if isinstance(answer, LeewardError):
            failed = failed or answer
            continue
        served = clusters_of(environment([answer]))
        if served is not None:
            return served
    if failed is not None:
        raise failed
    return None


def misplaced(arguments: argparse.Namespace) -> InvalidInputError | None:
    """Return the error for a call that looks for the cluster in the deployment's own account and Region, where the
    deployment knows it elsewhere; None for any other cluster, with the options, or where it cannot be asked.
    """
    if arguments.cluster is None or arguments.cluster_profile or arguments.cluster_region:
        return None
    answer = attempt(lambda: _known(arguments))
    if isinstance(answer, LeewardError):
        return None
    home, served = answer
    cluster = _named(arguments.cluster, served or ())
    if cluster is None or not cluster.member_role:
        return None
    expected_option = (
        f"--cluster-region {cluster.region}"
        if cluster.account == home.account
        else f"{OPTION} NAME: a profile of that account"
    )
    return InvalidInputError(
        f"--cluster: cluster {cluster.name!r} is in {_place(cluster.account, cluster.region)}, where the deployment in "
        f"{_place(home.account, home.region)} serves it; found no {expected_option.split(maxsplit=1)[0]}, expected "
        f"{expected_option}"
    )


def _elsewhere(arguments: argparse.Namespace) -> Elsewhere:
    from leeward.adapters import wiring  # late: offline needs no AWS library
    from leeward.adapters.caller import Elsewhere

    home, served = _known(arguments)
    cluster = _cluster(arguments.cluster, served, home)
    account, region = cluster.account or home.account, cluster.region or home.region
    where = f"where the deployment has cluster {cluster.name!r}"
    if arguments.cluster_region not in {None, region}:
        raise InvalidInputError(f"--cluster-region: found {arguments.cluster_region}, expected {region}, {where}")
    there = Elsewhere(
        account=account, region=region, profile=arguments.cluster_profile, member_role=cluster.member_role
    )
    found = home.account
    if there.profile is not None:
        try:
            entered = wiring.command_line_deployment(arguments.region, profile=arguments.profile, elsewhere=there)
            found = entered.identity().account
        except AccessDeniedError as error:
            raise AccessDeniedError(f"{OPTION} {there.profile}: {error}; {REFUSED}") from error
    if found != account:
        given = OPTION if there.profile is not None else "--cluster-region without --cluster-profile"
        raise InvalidInputError(f"{given}: found credentials of account {found}, expected those of {account}, {where}")
    return there


def _known(arguments: argparse.Namespace) -> tuple[CallerIdentity, tuple[Served, ...] | None]:
    """Return the deployment's account and Region, and the clusters that it serves."""
    from leeward.adapters import wiring

    deployment = wiring.command_line_deployment(arguments.region, **profile_of(arguments))
    return deployment.identity(), served_by(deployment)


def _cluster(name: str, served: tuple[Served, ...] | None, home: CallerIdentity) -> Served:
    """Return the cluster of the deployment's settings. Raises InvalidInputError."""
    where = _place(home.account, home.region)
    if served is None:
        raise InvalidInputError(
            f"{OPTION}: found no deployment in {where}, expected one: --profile and --region are those of the "
            f"deployment, {OPTION} and --cluster-region those of the cluster"
        )
    cluster = _named(name, served)
    if cluster is None:
        known = [one.name for one in served]
        raise InvalidInputError(
            f"--cluster: found {name!r}, expected one that the deployment in {where} serves: "
            f"{', '.join(_shown(one) for one in served)}{did_you_mean(name, known)}"
        )
    return cluster


def _named(name: str, served: tuple[Served, ...]) -> Served | None:
    return next((cluster for cluster in served if cluster.name == name), None)


def _shown(cluster: Served) -> str:
    return f"{cluster.name} ({cluster.account}/{cluster.region})" if cluster.member_role else cluster.name


def _place(account: str, region: str) -> str:
    return f"account {account}, Region {region}"
