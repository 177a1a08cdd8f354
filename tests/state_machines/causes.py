"""What the cause of a failed execution has to be, whatever has failed and wherever the execution ran."""

LONGEST = 1100  # characters
EXAMPLE = " Enter {"  # begins what a wrong input should have been, the only JSON in a cause


def flaws(error: str, cause: str, *names: str) -> list[str]:
    """What is wrong with the error and the cause of a failed execution; `names`: what the cause has to name."""
    plain = cause.partition(EXAMPLE)[0] if error == "InvalidInput" else cause
    wanted = {
        "has an error": bool(error),
        "is one line": cause == " ".join(cause.split()) != "",
        "is no JSON": not {"{", "}"} & set(plain),
        "has no traceback": "Traceback" not in cause and "stackTrace" not in cause,
        "is bounded": len(cause) < LONGEST,
        "acts on no terminal": cause.isprintable(),
        "begins with what it is about": not cause.startswith((":", " ")),
    }
    named = {f"names {name}": name in cause for name in names}
    return [what for what, holds in (wanted | named).items() if not holds]
