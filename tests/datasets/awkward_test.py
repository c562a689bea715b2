"""Awkward tables: each is read as a person would expect, or refused in one line; none in silence.

A row of ``READ``: what the table is, its content, options, what it is read as, and words of its notes.
A row of ``REFUSED``: what it is, its content, options, and words of the line. Text is a CSV file; an Arrow
table or a data frame is a Parquet file, a dictionary of arrays a .npz file. Polars is not installed: ``large_string`` and ``string_view`` are
the types of text that it writes, ``date32`` and microseconds its dates.
"""

# ruff: noqa: E501  (a table is a line)

import datetime
import decimal
import gzip
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.datasets.refusals import refused
from vfljax.datasets.user_table import table

BILLION = 10**9
DAYS = [datetime.date(2020, 2, 28), None, datetime.date(2020, 3, 1)]


def csv(a, y="0 1 0 1 0 1", sep="\n"):
    """A column a, its values parted by ``sep``, and labels."""
    rows = a.split(sep)
    labels = (y.split() * len(rows))[: len(rows)]
    return "a\ty\n" + "".join(f"{value}\t{label}\n" for value, label in zip(rows, labels))


def arrow(values, kind, y=(0, 1, 0)):
    return pa.table({"a": pa.array(values, kind), "y": pa.array(y)})


def summary(data):
    """Sources and classes: numbers as they are, of categories their values."""
    out = {}
    for j, column in enumerate(data.columns):
        if column.kind == "code":
            out[column.name] = f"code {column.vocabulary}"
        elif column.kind == "number":
            out[column.name] = " ".join(f"{x:.6g}" for x in data.features[:, j])
        else:
            out.setdefault(column.name, []).append(column.value)
    text = [f"{k}={v}" if isinstance(v, str) else f"{k}={{{'|'.join(v)}}}" for k, v in out.items()]
    return "; ".join([*text, f"classes {' '.join(data.classes)}"])


READ = (
    # words for missing values
    ("question marks", csv("1\n?\n3"), {}, "a=1 nan 3; classes 0 1", r"missing: \? in a \(1\)"),
    ("None, n/a, #N/A", csv("1\nNone\nn/a\n#N/A"), {}, "a=1 nan nan nan; classes 0 1", r"n/a in a \(1\)"),
    ("a dash, named", csv("1\n-\n3"), {"na_values": "-"}, "a=1 nan 3; classes 0 1", "- in a"),
    ("-999 as missing", csv("1\n-999\n-999.0\n4"), {"na_values": -999}, "a=1 nan nan 4; classes 0 1", r"-999 in a \(2\)"),
    ("-999 of an integer column", arrow([1, -999, 3], pa.int16()), {"na_values": (-999,)}, "a=1 nan 3; classes 0 1", "-999 in a"),
    ("NA as a category", csv("NA\nu\nv"), {"keep_default_na": False}, "a={NA|u|v}; classes 0 1", "categories"),
    ("NA by default", csv("NA\nu\nv"), {}, "a={u|v|(missing)}; classes 0 1", r"NA in a \(1\)"),
    ("words among numbers as categories", csv("1\nunknown\n3"), {"categorical": "a"}, "a={1|3|unknown}; classes 0 1", ""),
    # marks of categories
    ("whole numbers that pandas calls categories", pd.DataFrame({"a": pd.Categorical([7, 3, 7]), "y": [0, 1, 0]}), {}, "a={3|7}; classes 0 1", "categories, one-hot: a"),
    ("the same, named numeric", pd.DataFrame({"a": pd.Categorical([7, 3, 7]), "y": [0, 1, 0]}), {"numeric": "a"}, "a=7 3 7; classes 0 1", ""),
    ("polars' categories", pa.table({"a": pa.array(["u", "v", "u"], pa.string_view()).cast(pa.string()).dictionary_encode(), "y": [0, 1, 0]}), {}, "a={u|v}; classes 0 1", ""),
    # texts that hardly repeat
    ("hex codes, named", csv("\n".join(f"{k:04x}x" for k in range(30))), {"categorical": "a", "max_categories": 3}, "a={0000x|0001x|(other)}; classes 0 1", r"rare values became one, \(other\): a \(28\)"),
    ("twenty different words", csv("\n".join(f"w{k:02}" for k in range(20))), {"max_categories": 2}, "a={w00|(other)}; classes 0 1", "rare"),
    ("the rarest are pooled", csv("v\nu\nu\nw\nw\nx\n"), {"max_categories": 4}, "a={u|w|(other)|(missing)}; classes 0 1", r"rare values .*: a \(2\);"),
    # labels
    ("labels called None and NA", csv("1\n2\n3", "None NA x"), {}, "a=1 2 3; classes NA None x", "of the labels, NA, None are classes"),
    ("labels with zeros before them", csv("1\n2\n3", "007 7 10"), {}, "a=1 2 3; classes 7 10", "of the labels, zeros before a number are lost: 007"),
    ("a missing word that is nowhere", csv("1\n-999\n3"), {"na_values": ("-99",)}, "a=1 -999 3; classes 0 1", "no feature holds '-99'"),
    ("a saved index", ",a,y\n0,5.5,0\n1,6.5,1\n2,7.5,0\n", {}, "Unnamed: 0=0 1 2; a=5.5 6.5 7.5; classes 0 1", "in every row: Unnamed: 0; drop an identifier"),
    ("rows without a label", csv("1\n2\n3\n4", "u ? v u"), {"drop_unlabeled": True}, "a=1 3 4; classes u v", "rows without a label, left out: 1"),
    # headers
    ("no header", "39,State,no\n50,Self,yes\n", {"header": False, "label": 2}, "0=39 50; 1={Self|State}; classes no yes", ""),
    ("numbers as names", "id,1990,y\n1,5,0\n2,6,1\n", {}, "id=1 2; 1990=5 6; classes 0 1", "header=False if it is a row"),
    ("a trailing comma in every line", "a,y,\n1,0,\n2,1,\n", {}, "a=1 2; classes 0 1", "no name and no value, left out"),
    ("the same without a header", "1,0,\n2,1,\n", {"header": False, "label": "1"}, "0=1 2; classes 0 1", "no name and no value"),
    # dates, times and notations
    ("days", csv("2020-02-28\n\n2020-03-01"), {}, "a=0 nan 2; classes 0 1", r"days since the first: a \(2020-02-28"),
    ("German days", csv("28.2.2020\n1.03.2020"), {}, "a=0 2; classes 0 1", "%d.%m.%Y"),
    ("days that two forms read alike", csv("01/01/2020\n02/02/2020"), {}, "a=0 32; classes 0 1", "days since"),
    ("days of a named form", csv("01/02/2020\n03/04/2020"), {"date_format": "%d/%m/%Y"}, "a=0 62; classes 0 1", "%d/%m/%Y"),
    ("moments", csv("2020-01-01T12:00:00Z\n2020-01-01T00:00:00Z"), {}, "a=0.5 0; classes 0 1", "days since"),
    ("times of day", csv("1:30 PM\n12:00 AM"), {}, "a=0.5625 0; classes 0 1", "%I:%M %p"),
    ("polars' dates", arrow(DAYS, pa.date32()), {}, "a=0 nan 2; classes 0 1", r"a \(2020-02-28, type date32"),
    ("thousands", csv("1,000\n2,500.5\n3"), {"thousands": ","}, "a=1000 2500.5 3; classes 0 1", ""),
    ("decimal commas", csv("0,5\n-,25\n3"), {"decimal": ","}, "a=0.5 -0.25 3; classes 0 1", ""),
    ("percent", csv("5%\n10 %\n2.5%"), {"percent": True}, "a=0.05 0.1 0.025; classes 0 1", ""),
    ("days as digits, of a named form", csv("20200228\n20200301\n20200302"), {"date_format": "%Y%m%d"}, "a=0 2 3; classes 0 1", "2020-02-28, %Y%m%d"),
    ("percent of a column without any", csv("5\n6\n7"), {"percent": True}, "a=5 6 7; classes 0 1", ""),
    # what float32 loses
    ("two telephone numbers", csv("491701234567\n491701234568"), {}, "a=4.91701e+11 4.91701e+11; classes 0 1", "rounded to float32: a"),
    ("whole numbers that float64 does not hold", csv("9007199254740993\n9007199254740992\n1"), {}, "a=9.0072e+15 9.0072e+15 1; classes 0 1", "rounded to float32: a"),
    ("numbers that vanish", csv("1e-50\n2e-50"), {}, "a=0 0; classes 0 1", r"equal as float32: a \(1\)"),
    ("seconds after fifty years", csv("1970-01-01 00:00:01\n2020-01-01 00:00:01\n2020-01-01 00:00:02"), {}, "a=0 18262 18262; classes 0 1", r"equal as float32: a \(1\)"),
    # files
    ("a byte order mark", b"\xef\xbb\xbfa,y\n1,0\n2,1\n", {}, "a=1 2; classes 0 1", ""),
    ("UTF-16", "a,y\nü,0\nv,1\n".encode("utf-16"), {}, "a={v|ü}; classes 0 1", ""),
    ("Latin-1", "a,y\nü,0\nv,1\n".encode("latin-1"), {"file_encoding": "latin-1"}, "a={v|ü}; classes 0 1", ""),
    ("Excel's first line", "sep=|\na,b|y\r\n1|0\r\n2|1\r\n", {}, "a,b=1 2; classes 0 1", ""),
    ("gzip by no name", gzip.compress(b"a,y\n1,0\n2,1\n"), {}, "a=1 2; classes 0 1", ""),
    ("quotes, delimiters and line ends in fields", 'a,y\n"u, ""v""\nw",0\n"x",1\n', {}, 'a={u, "v"\nw|x}; classes 0 1', ""),
    ("spaces around everything", " a , y \n 1 , no \n 2 , yes \n", {}, "a=1 2; classes no yes", ""),
    ("a header that begins with #", "#a,y\n1,0\n2,1\n", {}, "#a=1 2; classes 0 1", ""),
    # types
    ("two percentages, named as categories", csv("5%\n7%\n5%"), {"categorical": "a"}, "a={5%|7%}; classes 0 1", ""),
    ("booleans in words", csv("TRUE\nfalse\n"), {}, "a=1 0 nan; classes 0 1", ""),
    ("mixed numbers and truth", csv("1\nTrue\n0"), {"categorical": "a"}, "a={0|1|True}; classes 0 1", ""),
    ("nullable integers and booleans", pd.DataFrame({"a": pd.array([1, None, 3], "Int8"), "b": pd.array([True, None, False]), "y": [0, 1, 0]}), {}, "a=1 nan 3; b=1 nan 0; classes 0 1", ""),
    ("decimals", arrow([decimal.Decimal("1.25"), None, decimal.Decimal("3.50")], pa.decimal128(6, 2)), {}, "a=1.25 nan 3.5; classes 0 1", ""),
    ("polars' texts", arrow(["u", None, "v"], pa.string_view(), pa.array(["n", "y", "n"], pa.large_string())), {}, "a={u|v|(missing)}; classes n y", ""),
    ("codes with zeros before them", csv("007\n010\n123"), {}, "a=7 10 123; classes 0 1", r"zeros before a number are lost: a \('007'\)"),
    ("categories in two cases", csv("Graz\ngraz\nUlm"), {}, "a={Graz|Ulm|graz}; classes 0 1", "differ in case, spaces or invisible characters only: a"),
    ("a data frame's index and labels of truth", pa.table({"__index_level_0__": [5, 6, 7], "a": [1.5, None, 2.0], "y": [True, False, True]}), {}, "a=1.5 nan 2; classes False True", "__index_level_0__: a data frame's index, left out"),
    ("no value at all", csv("\n\n"), {"drop": ()}, "a=nan nan nan; classes 0 1", r"a \(no value\)"),
    # texts, quotes and names
    ("stray spaces and signs", "a, b ,y\n 1,+2.5, 0\n1e3 ,-.5,1 \n NA ,NaN,0\n,null,1\n", {}, "a=1 1000 nan nan; b=2.5 -0.5 nan nan; classes 0 1", ""),
    ("quotes of every sort", 'a,b,y\n1,"u, ""v""",0\n2,"a\nb",1\n3,5" pipe,0\n4,"",1\n', {}, 'a=1 2 3 4; b={5" pipe|a\nb|u, "v"|(missing)}; classes 0 1', ""),
    ("pipes, quotes and a byte order mark", b'\xef\xbb\xbf"a;b,c"|"y"\r\n"say ""hi"", you"|"0"\r\n"two\nlines"|"1"', {}, 'a;b,c={say "hi", you|two\nlines}; classes 0 1', ""),
    ("kinds by name and glob", "c1,c2,n,y\n1,4,1.5,0\n2,4,2.5,1\n", {"categorical": ("c*",), "numeric": ("n",)}, "c1={1|2}; c2={4}; n=1.5 2.5; classes 0 1", ""),
    ("names that count", "0,1,2\n.5,6,0\n.7,8,1\n", {"label": "2"}, "0=0.5 0.7; 1=6 8; classes 0 1", ""),
    ("names that are no printable line", b'"a\n b\x1b\xe2\x80\xa8c",y\n1,0\n2,1\n', {}, "a b\ufffd c=1 2; classes 0 1", ""),
    ("formulas", csv("=cmd|' /C calc'!A0\n@SUM(1)\n!!python/object"), {}, "a={!!python/object|=cmd|' /C calc'!A0|@SUM(1)}; classes 0 1", ""),
    ("a delimiter that row 1 does not have", "weight, kg;y\n61.5;0\n70.25;1\n", {}, "weight, kg=61.5 70.25; classes 0 1", ""),
    ("the same the other way round", "a;b,y\n1,0\n2,1\n", {}, "a;b=1 2; classes 0 1", ""),
    ("an array of numbers and one of labels", {"x": np.arange(6, dtype=np.float16).reshape(3, 2), "y": np.array([3, 5, 3], ">i2")}, {}, "x0=0 2 4; x1=1 3 5; classes 3 5", ""),
    ("codes", csv("b\na\n\nc"), {"encoding": "codes"}, "a=code 4; classes 0 1", ""),
    ("zeros of both signs as categories", arrow([-0.0, 0.0, 1.0], None), {"categorical": "a"}, "a={0|1}; classes 0 1", ""),
    ("zeros in words as categories", csv("-0.0\n0\n01"), {"categorical": "a"}, "a={0|01}; classes 0 1", ""),
    ("labels that are floats", arrow([0, 1, 2, 3], None, [10.0, 9.0, -1.0, 9.0]), {}, "a=0 1 2 3; classes -1 9 10", "classes: -1 is 0, 9 is 1, 10 is 2"),
    ("a nested column, dropped", pa.table({"a": [[1], [2]], "b": [1, 2], "y": [0, 1]}), {"drop": "a"}, "b=1 2; classes 0 1", ""),
    # words that only resemble numbers or dates stay categories
    ("one percentage among words", csv("5%\nlow\nhigh\nnone"), {}, "a={5%|high|low|none}; classes 0 1", ""),
    ("two of a notation", csv("5%\n10%\nlow\n5%"), {}, "a={10%|5%|low}; classes 0 1", ""),
    ("no groups of three", csv("1,5\nu\nv"), {"thousands": ","}, "a={1,5|u|v}; classes 0 1", ""),
    ("German numbers", csv("1.500\n2\n3,5"), {"decimal": ",", "thousands": "."}, "a=1500 2 3.5; classes 0 1", ""),
    ("less than half", csv("5%\n10%\n15%\na\nb\nc\nd"), {}, "a={10%|15%|5%|a|b|c|d}; classes 0 1", ""),
    ("ranges", csv("0-4\n5-9\n10-14\n15+"), {}, "a={0-4|10-14|15+|5-9}; classes 0 1", ""),
    ("versions", csv("1.2.3a\nA12\nv1.0\n3/4"), {}, "a={1.2.3a|3/4|A12|v1.0}; classes 0 1", ""),
    ("two dates among words", csv("2020-01-02\n2020-01-03\nnever"), {}, "a={2020-01-02|2020-01-03|never}; classes 0 1", ""),
    ("words that begin as months do", csv("March Street 20\nmarket 12\nmay be\nSunday\nmaybe 12"), {}, "a={March Street 20|Sunday|market 12|may be|maybe 12}; classes 0 1", ""),
    ("proportions", csv("1:1\n2:1\n3:1"), {}, "a={1:1|2:1|3:1}; classes 0 1", ""),
    # dates of other types and forms
    ("pandas' moments", pd.DataFrame({"a": pd.to_datetime(["2020-01-02", None]), "y": [0, 1]}), {}, "a=0 nan; classes 0 1", "days since"),
    ("a moment and nothing", csv("2020-01-02 10:30:00\n\n"), {}, "a=0 nan nan; classes 0 1", "ISO 8601"),
    ("named months", csv("Jan 1, 2020\nDec 31, 2020"), {}, "a=0 365; classes 0 1", "%b %d, %Y"),
    ("named months after the day", csv("1 Jan 2020\n15 Mar 2021"), {}, "a=0 439; classes 0 1", "%d %b %Y"),
    ("hours", arrow([3600, 7200, None], pa.duration("s")), {}, "a=0 0.0416667 nan; classes 0 1", "type duration"),
    ("Arrow's times of day", arrow([3600, 46800, None], pa.time32("s")), {}, "a=0 0.5 nan; classes 0 1", "type time32"),
    ("days as categories", csv("2020-01-02\n2020-01-03"), {"categorical": "a"}, "a={2020-01-02|2020-01-03}; classes 0 1", ""),
)  # fmt: skip

REFUSED = (
    ("words among numbers", csv("1\n-\n3"), {}, "'a' holds numbers, and '-' in row 2: correct it, name such words in na_values= .* categorical="),
    ("mostly one number", csv("0\n0\n0\nx\ny\nz"), {}, "'a' holds numbers, and 'x' in row 4"),
    ("identifiers", csv("\n".join(f"id{k}" for k in range(21))), {}, "'a' has 21 distinct texts in 21 rows, like an identifier .* drop=, or in categorical="),
    ("numbers with a unit", csv("\n".join(f"{k} kg" for k in range(30))), {}, "30 distinct texts .* with a unit are to be written without"),
    ("a label is missing", csv("1\n2\n3\n4", "u ? v u"), {}, "missing in 1 of 4 rows, first in row 2: fill it, or drop_unlabeled=True"),
    ("labels in two cases", csv("1\n2\n3", "Yes yes no"), {}, "label 'y' has 'Yes' and 'yes', which differ in case, spaces or invisible"),
    ("one class", csv("1\n2\n3", "u u u"), {}, "label 'y' is 'u' in all rows"),
    ("a number to predict", csv("1\n2\n3", "0.5 1.5 2"), {}, "a regression target"),
    ("no header", "39,State,no\n50,Self,yes\n", {}, "unknown column in label= 'y'.* '39' one of them: header=False"),
    ("numbers only", "39,7,1\n50,8,0\n", {}, "has numbers in its first line.* header=False if it is a row"),
    ("no header, two delimiters", "1,5;0,5\n2,5;1,5\n", {"header": False, "label": 0}, "',' or ';' may cut, and no header tells: give delimiter="),
    ("days or months first", csv("01/02/2020\n03/04/2020"), {}, "date_format='%d/%m/%Y' or date_format='%m/%d/%Y'"),
    ("a day that is none", csv("31.02.2020\n01.03.2020"), {}, "that no form reads in all rows: give date_format="),
    ("words among dates", csv("2020-01-01\n2020-01-02\n2020-01-03\nsoon"), {}, "'a' holds dates, and 'soon' in row 4"),
    ("thousands", csv("1,000\n2,500.5\n3"), {}, r"\('1,000' in row 1\): give thousands=','"),
    ("thousands or decimals", csv("1,000\n2,500\n3,125"), {}, "give thousands=',' or decimal=','"),
    ("decimal commas", csv("0,5\n1,25\n3"), {}, r"\('0,5' in row 1\): give decimal=','"),
    ("both, as in German", csv("1.000,5\n2.000,25\n3,5"), {}, r"give thousands='\.' and decimal=','"),
    ("0,123 of thousands", csv("0,123\n0,567\n9,999"), {"thousands": ","}, r"notation that is not read \('0,123' in row 1\)"),
    ("two euros where an option says numbers", csv("5€\n6€"), {"decimal": ","}, "notation that is not read"),
    ("some numbers with a percent sign", csv("5%\n6\n7%"), {"percent": True}, "'a' has '6' in row 2, and numbers with a % elsewhere"),
    ("a form of dates that none has", csv("13/04/2020\n04/05/2020"), {"date_format": "%m/%d/%Y"}, r"no column of dates for date_format='%m/%d/%Y' \(dates are read as %d/%m/%Y\)"),
    ("a zone in some rows", csv("2020-01-01T00:00:00\n2020-01-01T00:00:00+02:00"), {}, "no form reads in all rows"),
    ("labels that look alike", csv("1\n2\n3", "caf\u00e9 cafe\u0301 tea"), {}, "differ in case, spaces or invisible characters only"),
    ("percent", csv("5%\n10 %\n2.5%"), {}, r"\('5%' in row 1\): give percent=True"),
    ("dollars", csv("$1.00\n-$2\n$ 3.50"), {}, r"\('\$1.00' in row 1\): write them without a sign"),
    ("Latin-1", "a,y\nü,0\nv,1\n".encode("latin-1"), {}, "line 2 is not UTF-8 text, by byte 0xfc: .* file_encoding='latin-1'"),
    ("UTF-16 without a mark", "a,y\nu,0\nv,1\n".encode("utf-16-le"), {}, "line 1 holds a NUL byte: .* file_encoding='utf-16-le'"),
    ("an encoding that is none", "a,y\n1,0\n2,1\n", {"file_encoding": "klingon"}, "file_encoding='klingon' is no encoding"),
    ("parted by spaces", "a  y\n1  0\n2  1\n", {}, "unknown column in label= 'y'.* It has but one column: give delimiter="),
    ("two files in one", "a,y\n1,0\n2,1\na,y\n3,0\n", {}, "'a' holds numbers, and 'a' in row 3"),
    ("a line of totals", "a,b,y\n1,2,0\n2,3,1\nTotal,5\n", {}, "row 3 has 2 values for 3 columns"),
    ("a comment before the header", "# of 2020\na,y\n1,0\n2,1\n", {}, "begins with a comment, '# of 2020', and no row: remove the lines that begin with #"),
    ("a comment with commas", "# made, by hand\na,b,y\n1,2,0\n2,3,1\n", {}, "begins with a comment, '# made, by hand'"),
    ("a comment and no header", "# of 2020\n1,0\n2,1\n", {"header": False, "label": 1}, "begins with a comment, '# of 2020'"),
    ("two numbers with a percent sign", csv("5%\n7%\n5%"), {}, r"\('5%' in row 1\): give percent=True, or name it in categorical="),
    ("two numbers with thousands", csv("1,000\n2,000\n"), {}, "give thousands=',' or decimal=','"),
    ("days that no clock holds", arrow([2**31 - 1, 0, 1], pa.date32()), {}, "'a' holds dates out of bounds"),
    ("names twice", "a,a,y\n1,2,0\n2,3,1\n", {}, "two columns are named 'a'"),
    ("a workbook", b"PK\x03\x04" + bytes(40), {}, "is a ZIP archive or an Excel workbook: save the table as CSV"),
    ("an open quote", 'a,y\n"1,0\n2,1\n', {}, "row 1 has a quote that is not closed"),
    ("a short row", "a,b,y\n1,2,0\n1,2\n", {}, "row 2 has 2 values for 3 columns"),
    ("infinity", csv("1\n-inf\n3"), {}, "'a' has -inf in row 2, which is infinite"),
    ("lists", arrow([[1], [2], []], pa.list_(pa.int8())), {}, "'a' is of type list<.*neither number nor text"),
    ("spaces as thousands", csv("1 000\n1 000 000\n1'000"), {}, r"'1 000' in row 1\): give thousands=' '"),
    ("percent with decimal commas", csv("1,5%\n2,5%\n7%"), {}, "give percent=True and decimal=','"),
    ("euros and pounds", csv("5 \u20ac\n6 \u20ac\n\u00a37"), {}, "'5 \u20ac' in row 1.: write them without a sign"),
    ("a minus sign that is no hyphen", csv("\u22121\n\u22122.5\n3"), {}, "'\u22121' in row 1"),
    ("weekdays of two forms", csv("Fri, 31-Jan-20\nSaturday, 1 Feb 2020"), {}, "no form reads in all rows: give date_format="),
    ("clocks of two forms", csv("12:05:00\n9:30\n1:00 PM"), {}, "no form reads in all rows"),
    ("too large for float32", csv("1\n1e39"), {}, r"'a' has 1e\+39 in row 2, which is too large"),
    ("too large for float64", csv("1\n1e400"), {}, "'a' has inf in row 2, which is infinite"),
    ("structs", pa.table({"a": [{"u": 1}, {"u": 2}], "y": [0, 1]}), {}, "'a' is of type struct<.*neither number nor text"),
    ("bytes", arrow([b"a", b"b", b"c"], pa.binary()), {}, "'a' is of type binary, neither number nor text"),
    ("lists of one length", arrow([[1, 2]] * 3, pa.list_(pa.int8(), 2)), {}, "'a' is of type fixed_size_list<.*neither number"),
    ("columns of one name", pa.Table.from_arrays([pa.array([1, 2])] * 3, ["a", "a", "y"]), {}, "two columns are named 'a'"),
    ("a missing number", csv("1\n\n3\n\n"), {"missing": "refuse"}, "'a' has no value in row 2 and missing='refuse'"),
    ("a missing word", csv("u\nv\nNA\nu\nNA"), {"missing": "refuse"}, "'a' has no value in row 3"),
    ("an empty label", "a,y\n1,a\n2,\n3,b\n", {}, "label 'y' is missing in 1 of 3 rows, first in row 2"),
    ("an infinite label", arrow([1, 2, 3], None, [0.0, 1.0, np.inf]), {}, "holds an infinite number|a regression"),
    ("one class in two spellings, among words", csv("1\n2\n3", "1 01 none"), {}, "label 'y' has '01' and '1', which are one number, among words"),
    ("classes beyond all bounds", csv("1\n2\n3", "1e99999999999999999999 1e9999 1"), {}, "not all whole numbers|infinite"),
    ("a word where numbers must be", csv("1\n\nhigh"), {"numeric": "a"}, "column 'a' has 'high' in row 3, which is no number"),
    ("a point where commas are", csv("1.5\n2.5\n3.5"), {"decimal": ","}, "give decimal='.'"),
    ("groups without a value", "a,b,y\n1,p,0\n2,,1\n", {"groups": "b"}, "column 'b' names groups and has no value in row 2"),
    # files of text
    ("nothing", b"", {}, "is empty"),
    ("blank lines", b"\n\r\n\n", {}, "is empty"),
    ("a mark only", b"\xef\xbb\xbf", {}, "is empty"),
    ("a header only", b"a,y", {}, "has a header and no row"),
    ("a header and blank lines", b"a,y\n\n\n", {}, "has a header and no row"),
    ("a long row", b"a,y\n1,0\n2,1\n3,4,1\n", {}, "row 3 has 3 values for 2 columns: correct it .* needs quotes"),
    ("an open quote in the last field", b'a,b,y\n1,u,0\n2,v,"1\n3,u,0\n4,v,1\n', {}, "row 2 has a quote"),
    ("a quote that closes rows later", b'a,b,y\n1,"u,0\n2,v,1\n3,"w",0\n4,u,1\n', {}, "row 1 has a quote"),
    ("a quote closed too early", b'a,b,y\n1,"u"v,0\n2,v,1\n', {}, "row 1 has a quote"),
    ("an open quote in the header", b'a,b,"y\n1,u,0\n2,v,1\n', {}, "has in its header a quote"),
    ("no header, as if counted", b"2,0,1\n6,8,0\n", {}, "numbers in its first line, .*called 0 to 2"),
    ("another delimiter", b"a:y\n1:0\n", {}, "unknown column"),
    ("a row with the delimiter of decimals", b"a;y\n0,5;1\n1,5\n", {}, "row 2 has .*or give delimiter= if"),
    ("a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), {}, "not UTF-8"),
    # arrays of a .npz file
    ("arrays of two lengths", {"a": np.ones(3), "y": np.ones(2)}, {}, r"y is float64 of shape \(2,\): it must be of 3 rows"),
    ("one array of many is shorter", {**{c: np.ones(5) for c in "abcdef"}, "odd": np.ones(4), "y": np.ones(5)}, {}, r"odd is float64 of shape \(4,\): it must be of 5 rows"),
    ("the first array is shorter", {"a": np.ones(2), "b": np.ones(3), "y": np.ones(3)}, {}, r"a is float64 of shape \(2,\): it must be of 3 rows"),
    ("a cube", {"x": np.ones((2, 2, 2)), "y": np.ones(2)}, {}, r"array 'x' has shape \(2, 2, 2\)"),
    ("another matrix", {"z": np.ones((2, 2)), "y": np.ones(2)}, {}, r"array 'z' has shape \(2, 2\)"),
    ("a scalar", {"a": np.float64(1), "y": np.ones(2)}, {}, r"a is float64 of shape \(\): it must be of"),
    ("complex numbers", {"a": np.ones(2, complex), "y": np.ones(2)}, {}, "'a' is of type complex128"),
    ("a matrix too wide", {"x": np.ones((2, 100_001), bool), "y": np.arange(2)}, {}, "has 100,001 columns, more"),
    ("no rows", {"a": np.ones(0), "y": np.ones(0)}, {}, "must be of some rows"),
    ("bytes that are no text", {"a": np.array([b"\xff", b"a"]), "y": np.arange(2)}, {}, "cannot be read"),
    ("1,001 classes", arrow(range(1001), None, range(1001)), {}, "has 1,001 distinct values, more than 1,000 classes"),
)  # fmt: skip

# options that do not fit a table of the columns a, b and y, and words of the line
OPTIONS = (
    ({"numeric": "a", "categorical": "*"}, "column 'a' is in categorical= and in numeric="),
    ({"drop": "aa"}, "unknown column in drop= 'aa': did you mean 'a'"),
    ({"label": "z"}, "own.data: unknown column in label= 'z'"),
    ({"drop": "*"}, "label='y' is also in drop="),
    ({"drop": ("a", "b")}, "has no column beside 'y' left: drop fewer"),
    ({"groups": "y"}, "label='y' is also groups="),
    ({"encoding": "one-hot"}, "unknown encoding 'one-hot': did you mean 'onehot'"),
    ({"max_categories": 0}, "max_categories=0: give an integer from 1"),
    ({"positive": "bade"}, r"unknown class \(positive=\) 'bade': choose from 0, 1"),
    ({"label": "b", "positive": "u"}, "positive='u': .* has 3 classes, not two"),
    ({"decimal": ";"}, "unknown decimal ';': choose from ., ,"),
    ({"thousands": ";"}, "unknown thousands ';': choose from"),
    ({"thousands": ",", "decimal": ","}, "thousands=',' is also decimal="),
    ({"percent": 1}, "percent=1: give True or False"),
    ({"date_format": 1}, "date_format=1: give a text"),
    ({"date_format": "dmy"}, "no column of dates for date_format='dmy': correct it"),
    ({"delimiter": ",,"}, "delimiter=',,': give one character"),
    ({"delimiter": '"'}, "delimiter='\"': give one character"),
    ({"test_file": "test.csv"}, "test.csv is missing"),
    ({"test_file": "own.data"}, "is the table itself: give another file"),
)  # fmt: skip

# of a training and a test file: their content, options, and what they are read as or refused with
TESTED = (
    ("truth, and truth in capitals", csv("true\nfalse"), csv("TRUE\nFALSE"), {}, "a=1 0 1 0; classes 0 1"),
    ("truth, and 1 and 0", csv("true\nfalse"), csv("1\n0\n"), {}, "a=1 0 1 0 nan; classes 0 1"),
    ("1 and 0, and truth", csv("1\n0"), csv("\ntrue"), {}, "a=1 0 nan 1; classes 0 1"),
    ("truth, and other numbers", csv("true\nfalse"), csv("1\n5"), {}, r"test.csv: column 'a' has numbers beside 0 and 1 \(row 2\), and the training rows have true and false: write both files alike"),
    ("other numbers, and truth", csv("1\n5"), csv("\ntrue"), {}, r"test.csv: column 'a' has true and false \(row 2\), and the training rows have numbers beside"),
    ("days since the training file's first", csv("1.2.2020\n3.2.2020"), csv("5.1.2020\n1.2.2020"), {}, "a=0 2 -27 0; classes 0 1"),
    ("a word among days", csv("1.2.2020\n3.2.2020"), csv("5.1.2020\nsoon"), {}, "'soon' in row 2, which is no date as"),
    ("percentages without a sign", csv("5%\n6%"), csv("7%\n8"), {"percent": True}, "'8' in row 2, and numbers with a % elsewhere"),
    ("percentages with a sign", csv("5\n6"), csv("7\n8%"), {"percent": True}, "'8%' in row 2, and numbers without a % elsewhere"),
    ("a column lacks", csv("1\n2"), "y\n0\n1\n", {}, "test.csv lacks 'a': give it the columns of .*own.data"),
    ("a column more", csv("1\n2"), "a\ty\tz\n1\t0\t1\n2\t1\t1\n", {}, "has also 'z'"),
    ("a word among numbers", csv("1\n2"), csv("1\nx"), {}, r"column 'a' has 'x' in row 2, which is no number: .* name it in categorical= \(the training rows have numbers\)"),
    ("a word where numbers must be", csv("1\n2"), csv("1\nx"), {"numeric": "a"}, "take the name out of numeric="),
    ("a category", csv("u\nv"), csv("u\nw"), {}, "column 'a' has 'w' in row 2, an unknown category at"),
    ("a missing category", csv("u\nv"), csv("u\n\n"), {}, r"column 'a' has '\(missing\)' in row 2"),
    ("a missing value", csv("u\nv"), csv("u\n\n"), {"missing": "refuse"}, "test.csv: column 'a' has no value in row 2 and"),
    ("a label", csv("1\n2"), csv("1\n2", "0 2"), {}, "label 'y' is '2' in row 2"),
    ("no label", csv("1\n2"), "a\ty\n1\t0\n2\t\n", {}, "label 'y' is missing in 1 of 2 rows"),
    # two types
    ("durations of two units", arrow([3600, 7200, None], pa.duration("s")), arrow([3600_000, None, 0], pa.duration("ms")), {}, "a=0 0.0416667 nan 0 nan -0.0416667; classes 0 1"),
    ("durations, and plain numbers", arrow([3600, 7200, None], pa.duration("s")), csv("3600\n7200"), {}, "test.csv: column 'a' has '3600' in row 1, which is no date as"),
    ("durations, and times of day", arrow([3600, 7200, None], pa.duration("s")), arrow([3600, 7200, None], pa.time32("s")), {}, "test.csv: column 'a' has '01:00:00.000' in row 1, which is no date as"),
    ("moments of two units", arrow([BILLION, None, 0], pa.timestamp("ns")), arrow([0, 86_400_000_000, None], pa.timestamp("us")), {}, "a=1.15741e-05 nan 0 0 1 nan; classes 0 1"),
    ("moments in nanoseconds at last", arrow([0, 86_400_000_000, None], pa.timestamp("us")), arrow([BILLION, None, 0], pa.timestamp("ns")), {}, "a=0 1 nan 1.15741e-05 nan 0; classes 0 1"),
    ("days of texts, and moments", csv("28.2.2020\n1.3.2020"), pd.DataFrame({"a": pd.to_datetime(["2020-02-28", None, "2020-03-01"]).as_unit("ns"), "y": [0, 1, 0]}), {}, "a=0 2 0 nan 2; classes 0 1"),
    ("times of day of two units", arrow([3600, 46800, None], pa.time32("s")), arrow([0, None, 3600_000_000], pa.time64("us")), {}, "a=0 0.5 nan -0.0416667 nan 0; classes 0 1"),
    ("days of another form", csv("25.01.2020\n1.2.2020"), csv("2020-02-01\n2020-02-13"), {}, "test.csv: column 'a' has '2020-02-01' in row 1, which is no date as"),
    ("days, and texts of them", arrow(DAYS, pa.date32()), csv("2020-02-01\n\n"), {}, "test.csv: column 'a' has '2020-02-01' in row 1, which is no date as"),
    ("days and texts of them as categories", arrow(DAYS, pa.date32()), csv("2020-02-28\n\n"), {"categorical": "a"}, r"a={2020-02-28|2020-03-01|(missing)}; classes 0 1"),
    ("percentages, and numbers", csv("5%\n6%"), arrow([0.05, None, 1.0], None), {"percent": True}, "a=0.05 0.06 0.05 nan 1; classes 0 1"),
    ("percentages, and truth", csv("0%\n100%"), csv("true\nfalse"), {"percent": True}, "a=0 1 1 0; classes 0 1"),
    ("other numbers and a missing one, and truth", csv("1\n5", "u v"), csv("true\nfalse", "u v"), {"na_values": 1}, r"has true and false \(row 2\)"),
    ("numbers, and percentages", arrow([0.05, None, 1.0], None), csv("5\n6%"), {"percent": True}, "'6%' in row 2, and numbers without a % elsewhere"),
    ("decimal commas, and numbers", csv("0,5\n1"), arrow([0.25, None, 1.0], None), {"decimal": ","}, "a=0.5 1 0.25 nan 1; classes 0 1"),
    ("whole numbers and fractions", arrow([1, 2, None], pa.int32()), arrow([0.5, None, 3.0], None), {}, "a=1 2 nan 0.5 nan 3; classes 0 1"),
    ("whole numbers that float64 does not hold, as categories", arrow([2**60, 2**60 + 1, 2], None), arrow([2, None, 2], pa.int32()), {"categorical": "a", "unknown": "ignore"}, f"a={{2|{2**60}|{2**60 + 1}}}; classes 0 1"),
    ("such labels, in two types", arrow([1, 2, 3], None, [-(2**53) - 1, -(2**53), 2**53]), arrow([1, 2, 3], None, ["9007199254740992"] * 3), {}, f"a=1 2 3 1 2 3; classes {-(2**53) - 1} {-(2**53)} {2**53}"),
)  # fmt: skip


def written(folder, content, name="own.data"):
    path = folder / name
    if isinstance(content, str | bytes):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    elif isinstance(content, pd.DataFrame):
        content.to_parquet(path)
    elif isinstance(content, dict):
        path = folder / f"{name}.npz"
        np.savez(path, **content)
    else:
        pyarrow.parquet.write_table(content, path)
    return str(path)


def read(folder, content, options):
    return table(written(folder, content), **{"label": "y", **options})


@pytest.mark.parametrize("case", READ, ids=lambda case: case[0])
def test_an_awkward_table_is_read_as_a_person_would_expect(tmp_path, case):
    _, content, options, expected, notes = case
    data = read(tmp_path, content, options)
    assert summary(data) == expected
    assert any(re.search(notes, note) for note in ("", *data.notes))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_an_awkward_table_is_refused_in_one_line(tmp_path, case):
    _, content, options, message = case
    line = refused(read, tmp_path, content, options, match=message)
    assert str(tmp_path / "own.data") in line or "file_encoding" in message


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=str)
def test_an_option_that_does_not_fit_is_refused_in_one_line(tmp_path, options, message):
    refused(read, tmp_path, "a,b,y\n1,u,0\n2,v,1\n3,w,0\n", options, match=message)


@pytest.mark.parametrize("case", TESTED, ids=lambda case: case[0])
def test_a_test_file_is_read_as_the_training_file_is_or_refused(tmp_path, case):
    _, content, tested, options, expected = case
    written(tmp_path, tested, "test.csv")
    options = {"test_file": "test.csv", "delimiter": "tab", **options}
    if expected.startswith("a="):
        assert summary(read(tmp_path, content, options)) == expected
    else:
        refused(read, tmp_path, content, options, match=expected)


def test_a_group_is_one_whole_number_whatever_types_the_files_have(tmp_path):
    numbers, wide = arrow([1, 2, 3], None), pa.array([2**60, 2**60 + 1, 2**60 + 2])
    written(tmp_path, numbers.append_column("g", pa.array([5, 6, 5], pa.int32())), "test.csv")
    options = {"groups": "g", "test_file": "test.csv"}
    assert len(set(read(tmp_path, numbers.append_column("g", wide), options).groups)) == 5
