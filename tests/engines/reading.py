"""Read an engine's configuration back by its templates: the oracle of the export."""

import ast
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from fusion_bench.engines.dialects._dialect import (
    PART,
    Each,
    EngineDialect,
    Form,
    Maybe,
    Slot,
    Values,
    name_of,
)
from fusion_bench.engines.dialects._translation import LONGEST_WINDOW, name_weights
from fusion_bench.engines.dialects.search_servers import TEXT_ALIAS
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import NoBlend


def read_system(dialect: type[Dialect], files: Mapping[str, str], name: str = "s") -> System:
    """The system that an engine's files describe."""
    assert issubclass(dialect, EngineDialect)
    problem: Exception = ValueError("no form")
    for form in dialect.forms:
        try:
            values = _match_form(form, files)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = error
            continue
        keys = READERS.get(dialect.name, make_system)(dialect, values)
        return System.model_validate({"name": name, "dialect": dialect.name, **keys})
    raise ValueError(problem)


def _match_form(form: Form, files: Mapping[str, str]) -> Values:
    values: Values = dict(form.values)
    for name, template in form.files.items():
        if name not in files:
            raise KeyError(f"no file {name} (given: {', '.join(files) or 'none'})")
        matched = _match_template(template, files[name]).items()
        values |= {key: value for key, value in matched if value or key not in values}
    return values


def _match_template(template: Any, text: str) -> Values:  # noqa: ANN401 - JSON or a text
    """The values that a text was filled with."""
    if isinstance(template, str):
        return _match_text(template, text)
    return _match_json(template, json.loads(text), {})


def _match_json(template: Any, data: Any, values: Values) -> Values:  # noqa: ANN401 - JSON
    if isinstance(template, Slot):
        values[template.name] = data
    elif isinstance(template, Each):
        values["sources"] = [_match_json(template.item, item, {}) for item in data]
    elif isinstance(template, Maybe):
        _match_json(template.template, data, values)
    elif isinstance(template, Mapping):
        for key, item in template.items():
            if isinstance(key, Slot):
                ((values[key.name], value),) = data.items()
                _match_json(item, value, values)
            elif key in data or not isinstance(item, Maybe):
                _match_json(item, data[key], values)
    else:
        _match_items(template, data, values)
    return values


def _match_items(template: Any, data: Any, values: Values) -> None:  # noqa: ANN401 - JSON
    if isinstance(template, list):
        given = list(data)
        for item in template:
            try:
                _match_json(item, given[0], values)
            except (KeyError, ValueError):
                if not isinstance(item, Maybe):
                    raise
            else:
                del given[0]
        if given:
            raise ValueError(f"{given!r:.60} in place of nothing")
    elif template != data:
        raise ValueError(f"{data!r:.60} in place of {template!r:.60}")


_LITERAL: Final = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[^"'\n])+?"""


def _read_plain(text: str) -> Any:  # noqa: ANN401 - a number or a word
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


#: What a value looks like as it is written, and how it is read.
_FORMS: Final[Mapping[str | None, tuple[str, Callable[[str], Any]]]] = {
    "r": (_LITERAL, ast.literal_eval),
    "j": (_LITERAL, json.loads),
    "q": ("'(?:[^']|'')*'", lambda text: text[1:-1].replace("''", "'")),
    "i": ('"(?:[^"]|"")*"', lambda text: text[1:-1].replace('""', '"')),
    "t": (r"[^\n]+?", str),
    None: (r"""[^\s"'(){}\[\],;:]+""", _read_plain),
}


def _match_text(template: str, text: str) -> Values:
    pattern, reads = _make_pattern(template)
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ValueError("another text")
    values: Values = {"sources": []}
    for name, given in match.groupdict().items():
        if given is None:
            continue
        if isinstance(read := reads[name], str):
            for n, item in enumerate(re.finditer(_make_pattern(read)[0], given)):
                if n == len(values["sources"]):
                    values["sources"].append({})
                values["sources"][n] |= _match_text(read, item[0])
                values["sources"][n].pop("sources")
        else:
            values[name] = read(given)
    return values


def _make_pattern(
    template: str, known: Mapping[str, str | Callable[[str], Any]] = MappingProxyType({})
) -> tuple[str, dict[str, str | Callable[[str], Any]]]:
    """A regular expression with a group a value, and how each group is read."""
    pattern, end = "", 0
    reads = dict(known)
    for part in PART.finditer(template):
        pattern += re.escape(template[end : part.start()])
        end = part.end()
        if (item := part["each"]) is not None:
            once = re.sub(r"\(\?P<\w+>", "(?:", _make_pattern(item)[0])
            name, between = f"each_{part.start()}", re.escape(part["between"] or "")
            pattern += f"(?P<{name}>{once}(?:{between}{once})*)"
            reads[name] = item
        elif (item := part["maybe"]) is not None:
            inner, reads = _make_pattern(item, reads)
            pattern += f"(?:{inner})?"
        elif part["slot"] in reads:
            pattern += f"(?P={part['slot']})"
        else:
            regex, reads[part["slot"]] = _FORMS[part["form"]]
            pattern += f"(?P<{part['slot']}>{regex})"
    return pattern + re.escape(template[end:]), reads


def make_system(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    if dialect.is_pair:
        sources = [{"name": values["other"]}, {"name": values["vector"]}]
    else:
        windows = values.get("windows", {}).items()
        listed = [{"name": name, "window": window} for name, window in windows]
        sources = values.get("sources") or listed
    names = [source["name"] for source in sources]
    given = {**sources[0], **values}
    method = dialect.fusions().find_plugin(given.get("method", name_of(dialect.methods[0])))
    fusion = {key: given[key] for key in method.model_fields if key in given}
    fusion["method"] = name_of(method)
    weights = values.get("weights") or [source.get("weight") for source in sources]
    fusion.pop("weights", None)
    if "weights" in method.model_fields and None not in weights:
        fusion["weights"] = dict(zip(names, weights, strict=True))
    window = given.get("window")
    depth = {source["name"]: source.get("window", window) for source in sources}
    is_common = len({*depth.values()}) == 1
    kept = values.get("chunks") or values.get("more_chunks") or 1
    collapse = {"by": {"field": values["parent"]}, "keep": kept} if "parent" in values else None
    return {
        "collapse": collapse,
        "runs": names,
        "fusion": fusion,
        "depth": depth[names[0]] if is_common else depth,
        "top_k": values.get("top_k"),
    }


def _read_search(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    for each in values["sources"]:
        each["name"] = _find_name(each["search"])
    system = make_system(dialect, {**values, "top_k": values["size"]})
    if name := values.get("reranker"):
        keys = {"method": "replace", "reranker": name, "depth": values["rerank_depth"]}
        system["blend"] = {**keys, "tail": "drop", "missing": "below"}
    return system


def _find_name(search: Mapping[str, Any]) -> str:
    if "_name" in search:
        return str(search["_name"])
    inner = [value for value in search.values() if isinstance(value, Mapping)]
    if not inner:
        raise KeyError("_name")
    return _find_name(inner[0])


def _read_elasticsearch(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    system = _read_search(dialect, values)
    scales = {each["name"]: each.get("normalizer_name") for each in values["sources"]}
    if values["method"] == "linear":
        system["fusion"]["normalizer"] = scales
    return system


def _read_opensearch(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    given = {"size": values["hits"], "rerank_depth": values["hits"], **values}
    if "normalization" in given:
        given["combination"] = given["technique"]
    return _read_search(dialect, given)


def _read_conv_07_05(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    slots, weights = values["slots"], values["slot_weights"]
    sources = [
        {"name": each["source"], "window": each["limit"], "weight": weights[slot]}
        for slot, each in slots.items()
    ]
    strategies = {each["source"]: slot for slot, each in slots.items()}
    system = make_system(dialect, {**values, "sources": sources, "strategies": strategies})
    if values["is_reranked"]:
        skipping = {"always_rerank": values["always_rerank"], "skip_limit": values["top_k"]}
        kept = {"reranker": values["reranker"], "depth": values["rerank_depth"]}
        system["blend"] = {**kept, **skipping}
    return system


def _read_lucene(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    if values["method"] == "rrf":
        return make_system(dialect, values)
    names = [source["name"] for source in values["sources"]]
    weights, least, most, rates = (
        dict(zip(names, _read_floats(values[f"{name}_floats"]), strict=False))
        for name in ("weight", "least", "most", "rate")
    )
    fusion = {
        "method": values["method"],
        "weights": weights,
        "logit_bounds": {name: [low, most[name]] for name, low in least.items()},
        "gating": values["gating_name"].lower(),
        "signal_base_rates": rates,
    }
    for name in ("alpha", "base_rate"):
        (fusion[name],) = _read_floats(values[f"{name}_float"])
    top_k = values["top_k"]
    return {"runs": names, "fusion": fusion, "top_k": top_k if top_k < LONGEST_WINDOW else None}


def _read_floats(text: str) -> list[float]:
    return [float(value) for value in re.findall(r"(-?[\d.]+(?:[eE][-+]?\d+)?)f", text)]


def _read_lancedb(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    given = dict(argument.split("=") for argument in values["arguments"].split(", "))
    return make_system(dialect, {**values, **{key: float(given[key]) for key in given}})


def _read_weaviate(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    return make_system(dialect, {"top_k": values["limit"], **values})


def _read_semche(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    return make_system(dialect, {**values, "window": 2 * values["half"]})


def _read_bonus(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    blend = dict(values["blend"] or NoBlend().model_dump())
    if "tiers" in blend:
        blend["tiers"] = {int(limit): weight for limit, weight in blend["tiers"]}
    weights = [*values["weights_by_name"].values()]
    return {**make_system(dialect, {**values, "weights": weights}), "blend": blend}


def _read_adr_005(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    if values["is_v2"]:
        bonus = {int(rank): value for rank, value in values["bonus_pairs"]}
        return _read_bonus(dialect, {**values, "method": "rrf_v2", "bonus": bonus})
    system = _read_bonus(dialect, {**values, "method": "rrf"})
    system["fusion"].pop("weights")
    if values["blend"] is not None:
        kept = {key: values["blend"][key] for key in ("reranker", "depth")}
        system["blend"] = {"method": "replace", **kept}
    return system


def _read_azure(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    if text := values.get("text"):
        window = values["text_window"]
        values["sources"].insert(0, {"name": text, "weight": 1.0, "window": window})
    return make_system(dialect, values)


def _read_manticore(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    text = values.get("text")
    sources = [
        {"name": text if name == TEXT_ALIAS and text is not None else name, "weight": weight}
        for name, weight in values["aliases"].items()
    ]
    return make_system(dialect, {**values, "sources": sources})


def _read_cosmos(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    return {**make_system(dialect, {"weights": values.get("signed"), **values}), "depth": None}


def _read_milvus(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    system = make_system(dialect, {**values, "method": "rrf", "k": values.get("constant")})
    if values["ranker"] == "RRFRanker":
        return system
    weights = [float(weight) for weight in values["factors"].split(", ")]
    system["fusion"] = {
        "method": "weighted",
        "weights": name_weights(dict(zip(system["runs"], weights, strict=True)))
        if set(weights) == {1.0}
        else dict(zip(system["runs"], weights, strict=True)),
        "norm_score": values["norm_score"],
        "metric": {each["name"]: each["metric"] for each in values["sources"]},
    }
    return system


def _read_qdrant(dialect: type[EngineDialect], values: Values) -> dict[str, Any]:
    return make_system(dialect, {"method": values.get("score_fusion", "rrf"), **values})


#: Dialects whose files hold more than the base reads.
READERS: Final[Mapping[str, Callable[[type[EngineDialect], Values], dict[str, Any]]]] = {
    "adr-005": _read_adr_005,
    "azure": _read_azure,
    "conv-07-05": _read_conv_07_05,
    "cosmos": _read_cosmos,
    "elasticsearch": _read_elasticsearch,
    "lancedb": _read_lancedb,
    "lucene": _read_lucene,
    "manticore": _read_manticore,
    "milvus": _read_milvus,
    "opensearch": _read_opensearch,
    "qdrant": _read_qdrant,
    "qmd": _read_bonus,
    "semche": _read_semche,
    "weaviate": _read_weaviate,
}
