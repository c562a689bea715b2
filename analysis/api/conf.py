"""Sphinx's settings; ``docstrings`` says how a docstring becomes a page.

    python -m sphinx -W -q -c analysis/api analysis runs/site

The sources are the Markdown pages and notebooks of ``analysis/`` as they are, the pages beside this file, and
those that ``pages`` makes in ``generated``.
"""

import inspect
import pathlib
import re

from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import stringify_signature

from analysis.api import docstrings, pages

ROOT = pathlib.Path(__file__).parents[2]

project = "vfljax"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode", "myst_nb"]
nb_execution_mode = "off"  # notebooks are shown with the outputs that they were stored with
root_doc = "api/index"
include_patterns = [
    *("api/*.rst", "api/generated/*.rst", "*.ipynb", "guide/*.md", "reference/*.md"),
    *("applications/*.md", "results/**/README.md", "results/*.md", "results/papers/*.md"),
]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {
    "description": "Label leakage in vertical federated learning, on JAX",
    "page_width": "1240px",
    "sidebar_width": "220px",
    "body_max_width": "1000px",
    "code_font_size": "0.8em",
    "fixed_sidebar": True,
    "font_family": "system-ui, sans-serif",
    "head_font_family": "system-ui, sans-serif",
    "show_powered_by": False,
}
html_show_copyright = False
html_copy_source = False
# equations and tables; examples that begin with >>> are read as Python all the same
highlight_language = "none"
smartquotes_action = "D"  # dashes only: quotation marks are often those of a value
add_module_names = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 90
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Array", "PyTree", "HostArray", "LossFn")}
autodoc_inherit_docstrings = False

# called below and not loaded as an extension, which takes what stands before a field's first colon for its type
GOOGLE = Config(napoleon_use_rtype=False, napoleon_use_ivar=True)
HIDDEN = "\ue000"  # a character that no docstring has
FUNCTION = re.compile(r"= \(?<function.*?>\)?(?=, \w+: |\)$)")  # a default that is a function
ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
FLAX = re.compile(r",?\s*(parent|name)(: [^=]+)?\s*=\s*(<[^>]*>|None|[^,)]*)(?=[,)])")


def commented(app):
    """Sphinx's event ``builder-inited``: comments beside fields stand where it keeps their docstrings."""
    for name in pages.modules():
        analyzer = ModuleAnalyzer.for_module(name)
        analyzer.analyze()
        for place, said in docstrings.field_comments(analyzer.code).items():
            analyzer.attr_docs.setdefault(place, [said, ""])


def mended(app, what, name, obj, options, lines):
    """Sphinx's event ``autodoc-process-docstring``."""
    if what == "attribute" and lines and lines[0].startswith("Alias for field number"):
        lines[:] = []  # a field's own, which Python writes
    if what == "class" and lines and re.match(rf"{obj.__name__}\(.*\)$", " ".join(lines).strip()):
        lines[:] = []  # a record's own, which Python writes
    lines[:] = docstrings.as_it_stands(lines)
    if what in ("function", "method", "class"):
        lines[:] = sections(lines, what, name, obj)


def sections(lines, what, name, obj):
    """Arguments, returned values and errors as fields. What is returned is said in sentences: a colon in
    them ends no type, so it is hidden while the sections are read."""
    start = next((n for n, line in enumerate(lines) if line in ("Returns:", "Yields:")), len(lines))
    end = next((n for n in range(start + 1, len(lines)) if lines[n][:1].strip()), len(lines))
    hidden = [
        line.replace(":", HIDDEN) if start < n < end else line for n, line in enumerate(lines)
    ]
    # napoleon reads its own settings alone
    read = GoogleDocstring(hidden, GOOGLE, what=what, name=name, obj=obj).lines()  # pyright: ignore[reportArgumentType]
    return [line.replace(HIDDEN, ":") for line in read]


def signed(app, what, name, obj, options, signature, returns):
    """Sphinx's event ``autodoc-process-signature``: without what flax adds to a network's fields and the
    names of private defaults. A record's field whose default is a function is no method of it: its first
    argument is shown too."""
    signature, returns = (text and ALIAS.sub(r"\1", text) for text in (signature, returns))
    if what == "class" and signature:
        signature = FUNCTION.sub("= ...", signature)
        signature = FLAX.sub("", signature) if "parent" in signature else signature
    elif what == "method" and obj.__name__.startswith("_") and obj.__name__ not in name:
        whole = inspect.signature(obj, eval_str=True)
        signature = stringify_signature(whole, show_annotation=False, show_return_annotation=False)
    return signature, returns


def setup(app):
    app.connect("autodoc-process-docstring", mended)
    app.connect("autodoc-process-signature", signed)
    app.connect("builder-inited", commented)
    app.connect("config-inited", lambda app, config: pages.write(ROOT / "analysis/api/generated"))
