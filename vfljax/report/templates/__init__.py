"""The HTML of the report as Jinja2 templates."""

from __future__ import annotations

import functools
import pathlib

import jinja2

TEMPLATES = pathlib.Path(__file__).parent


@functools.cache
def templates() -> jinja2.Environment:
    """The templates of the report; values are escaped unless a template marks them safe."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    # Bokeh's JSON defines a model where it is named first, so its keys must keep their order
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return environment
