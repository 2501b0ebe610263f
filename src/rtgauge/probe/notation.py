# SPDX-License-Identifier: MIT
"""How people write a probe's parameters on its command line: the placeholder of each value, and its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic_core import PydanticUndefined

from rtgauge.probe.common_parameters import DMA_LATENCY_OFF, DmaLatencyUs, OnOff
from rtgauge.record.probe_parameters import Parameters
from rtgauge.units import format_duration
from rtgauge.validation import CpuList, DurationNs

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from rtgauge.probe.descriptor import Probe

SAMPLES = "samples"
"""The parameter whose option names the file for the samples."""
NOTATIONS = {"TIME": DurationNs, "CPUS": CpuList, "US|off": DmaLatencyUs, "on|off": OnOff}
"""Metavar -> type, for values that are not plain text or numbers. The type's validator identifies a field."""


def _metadata(annotation: Any) -> list[Any]:
    """Return the metadata of an annotation, including the members of a union."""
    if get_origin(annotation) is Annotated:
        kind, *metadata = get_args(annotation)
        return [*metadata, *_metadata(kind)]
    return [entry for member in get_args(annotation) for entry in _metadata(member)]


def metavar_of(field: FieldInfo) -> str:
    """Return the value's placeholder in the help: a notation, the choices, N or TEXT; empty for a flag."""
    metadata = [*field.metadata, *_metadata(field.annotation)]
    for name, notation in NOTATIONS.items():
        if any(validator in metadata for validator in get_args(notation)[1:]):
            return name
    if get_origin(field.annotation) is Literal:
        return "|".join(get_args(field.annotation))
    kinds = [getattr(kind, "__origin__", kind) for kind in get_args(field.annotation) or (field.annotation,)]
    return "" if bool in kinds else "N" if int in kinds else "NUMBER" if float in kinds else "TEXT"


def written(metavar: str, value: Any) -> str:
    """Return a value in the notation of its placeholder; empty if there is no value."""
    if value is None or value is PydanticUndefined:
        return ""
    if metavar == "TIME":
        return format_duration(value) if value else "0"
    if metavar == "NUMBER":
        return f"{value:.15g}"
    if metavar == "on|off":
        return "on" if value else "off"
    return "off" if metavar == "US|off" and value == DMA_LATENCY_OFF else str(value)


def options_of(probe: Probe[Any], parameters: Parameters) -> list[str]:
    """Return the words after a probe's command that give these parameters. Defaults are left out."""
    values, trait = parameters.values, probe.command
    hidden = {SAMPLES, *probe.files, *(trait.not_options if trait is not None else ())}
    words: list[str] = []
    for name, field in probe.parameters.model_fields.items():
        if trait is not None and field.alias == trait.argument:
            words.insert(0, str(values.get(name) or trait.argument_metavar))
            continue
        value = values.get(name)
        usual = field.get_default(call_default_factory=True, validated_data=values)
        if value is None or value == usual or field.alias in hidden:
            continue
        metavar = metavar_of(field)
        words += [f"--{field.alias}", written(metavar, value)] if metavar else [f"--{field.alias}"]
    return words
