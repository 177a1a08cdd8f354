"""Decoding of a body as in the API server: unknown fields are dropped, values of a wrong type are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.cluster.errors import ApiError, bad_request
from local.cluster.objects import Obj
from local.cluster.resources import Resource
from local.cluster.schemas import FieldType, Model, model_named, model_of

_GO_TYPES = {"str": "string", "int": "int32", "float": "float64", "bool": "bool", "dict": "map[string]string"}
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "Time": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "dict": (dict,),
    "IntOrString": (int, str),
    "Quantity": (int, float, str),
}


class WrongTypeError(ValueError):
    """Error: a value of another type than its field's, in the words of Go's decoder."""


class Decoder:
    """Decoder of the bodies of one request; `unknown` names the fields that were dropped."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self.unknown: list[str] = []

    def decoded(self, obj: Obj) -> Obj:
        """Return the object without unknown fields. Raises WrongTypeError."""
        model = model_of(self._resource)
        return obj if model is None else self._object(obj, model, ())

    def created(self, obj: Obj) -> Obj:
        """Decode a whole object that was sent, as `decoded` does. Raises 400."""
        kind, version = self._resource.kind, self._resource.version
        try:
            return self.decoded(obj)
        except WrongTypeError as failure:
            raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {failure}') from failure

    def patched(self, patch: Any) -> Callable[[Obj], Obj]:
        """Return a function that decodes the result of a patch, as `decoded` does. It raises 422, without the name of
        the object.
        """

        def decode(obj: Obj) -> Obj:
            try:
                return self.decoded(obj)
            except WrongTypeError as failure:
                text = f'Invalid value: "{patch}": {failure}'
                causes = [{"reason": "FieldValueInvalid", "message": text, "field": "patch"}]
                message = f' "" is invalid: patch: {text}'
                raise ApiError(422, "Invalid", message, details={"causes": causes}) from failure

        return decode

    def check(self, validation: str) -> None:
        """Raise 400 for unknown fields where the request asks for strict validation."""
        if validation == "Strict" and self.unknown:
            listed = ", ".join(f'unknown field "{path}"' for path in self.unknown)
            raise bad_request(f"{self._resource.kind} in version {self._resource.version!r}: {listed}")

    def warnings(self, validation: str) -> list[str]:
        """Return the values of the Warning headers."""
        if validation == "Ignore":
            return []
        return [f'299 - "unknown field \\"{path}\\""' for path in self.unknown]

    def _object(self, obj: Obj, model: Model, path: tuple[str, ...]) -> Obj:
        result: Obj = {}
        for key, value in obj.items():
            field = model.fields.get(key)
            if field is None:
                self.unknown.append("".join((*path, key)))
            else:
                result[key] = self._value(value, field, model, (*path, key))
        return result

    def _value(self, value: Any, field: FieldType, owner: Model, path: tuple[str, ...]) -> Any:
        if value is None:
            return None
        if not field.is_list:
            return self._single(value, field, owner, path)
        if not isinstance(value, list):
            raise WrongTypeError(_wrong(value, f"[]{_go_type(field)}", owner, path))
        return [self._single(item, field, owner, (*path, f"[{index}]")) for index, item in enumerate(value)]

    def _single(self, value: Any, field: FieldType, owner: Model, path: tuple[str, ...]) -> Any:
        model = model_named(field.name)
        accepted = (dict,) if model is not None else _ACCEPTED.get(field.name)
        if accepted is None:
            return value
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise WrongTypeError(_wrong(value, _go_type(field), owner, path))
        return self._object(value, model, (*path, ".")) if model is not None and isinstance(value, dict) else value


def _go_type(field: FieldType) -> str:
    return _GO_TYPES.get(field.name, field.name.replace("_", "").replace("core", ""))


def _wrong(value: Any, wanted: str, owner: Model, path: tuple[str, ...]) -> str:
    found = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}[type(value)]
    where = f"{owner.name.rpartition('.')[2]}.{''.join(path)}"
    return f"json: cannot unmarshal {found} into Go struct field {where} of type {wanted}"
