"""The report's words: its HTML, its captions and its lists of sentences, as Jinja2 templates."""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import jinja2

from vfljax.report.words import figure

TEMPLATES = pathlib.Path(__file__).parent


@functools.cache
def templates() -> jinja2.Environment:
    """The templates of the report; in HTML values are escaped unless a template marks them safe."""
    of = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    of.filters["figure"] = figure
    return of


def paragraphs(template: str, **values: Any) -> list[str]:
    """Returns the paragraphs that a template makes, each on one line.

    Args:
      template: the name of a text template, whose paragraphs have an empty line between them.
      **values: what it names.
    """
    text = templates().get_template(f"{template}.txt").render(values)
    parts = re.split(r"\n\s*\n", text.strip())
    # blanks within a line may be those of a name, and stay
    return [re.sub(r"\s*\n\s*", " ", part.strip()) for part in parts if part.strip()]
