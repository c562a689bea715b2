"""Awkward tables: each is read as a person would expect, or refused in one line; none in silence.

A row of ``READ``: what the table is, its content, options, what it is read as, and words of its notes.
A row of ``REFUSED``: what it is, its content, options, and words of the line. Text is a CSV file, an Arrow
table or a data frame is a Parquet file, and a dictionary of arrays is a .npz file.
"""

# ruff: noqa: E501  (a table is a line)

import datetime
import gzip
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.datasets.refusals import refused
from tests.datasets.tables import summary
from vfljax.datasets.table import table

DAYS = [datetime.date(2020, 2, 28), None, datetime.date(2020, 3, 1)]
MIXED = "price;rate;y\n3.25;0,5;0\n1.25;1,25;1\n2.50;1,0;0\n"
TWO_NAMES = pa.Table.from_arrays([pa.array([1, 2])] * 3, ["a", "a", "y"])
CATEGORIES = pd.DataFrame({"a": pd.Categorical([7, 3, 7]), "y": [0, 1, 0]})


def csv(a, y="0 1 0 1 0 1", sep="\n"):
    """A column a, its values separated by ``sep``, and labels."""
    rows = a.split(sep)
    labels = (y.split() * len(rows))[: len(rows)]
    return "a\ty\n" + "".join(f"{value}\t{label}\n" for value, label in zip(rows, labels))


def arrow(values, kind, y=(0, 1, 0)):
    return pa.table({"a": pa.array(values, kind), "y": pa.array(y)})


def pandas(**options):
    return {"options": options}


READ = (
    # missing values
    ("question marks and blanks", csv("1\n ? \n 3\n NA "), {}, "a=1 nan 3 nan; classes 0 1", ""),
    ("a dash, named", csv("1\n-\n3"), {"na_values": "-"}, "a=1 nan 3; classes 0 1", ""),
    ("-999 of an integer column", arrow([1, -999, 3], pa.int16()), {"na_values": (-999,)}, "a=1 nan 3; classes 0 1", ""),
    ("NA by default", csv("NA\nu\nv"), {}, "a={u|v|(missing)}; classes 0 1", ""),
    ("NA of Parquet is a word", arrow(["NA", "u", "?"], pa.string()), {}, "a={NA|u|(missing)}; classes 0 1", ""),
    ("rows and columns without any value", "a,b,y\n1,,0\n,,\n2,,1\n", {}, "a=1 2; classes 0 1", "rows without any value, left out: 1|columns without any value, left out: b"),
    # categories
    ("words among numbers as categories", csv("1\nunknown\n3"), {"categorical": "a"}, "a={1|3|unknown}; classes 0 1", ""),
    ("whole numbers that pandas calls categories", CATEGORIES, {}, "a={3|7}; classes 0 1", ""),
    ("Arrow's texts", arrow(["u", None, "v"], pa.string_view(), pa.array(["n", "y", "n"], pa.large_string())), {}, "a={u|v|(missing)}; classes n y", ""),
    ("twenty different words", csv("\n".join(f"w{k:02}" for k in range(20))), {"max_categories": 2}, "a={w00|(other)}; classes 0 1", ""),
    ("categories in two cases", csv("Graz\ngraz\nUlm"), {}, "a={Graz|Ulm|graz}; classes 0 1", "a: some categories differ in case"),
    # codes
    ("codes with a point that are named", csv("001.9\n1.9\n-007\n-7"), {"categorical": "a"}, "a={-007|-7|001.9|1.9}; classes 0 1", ""),
    ("codes that are named", csv("007\n7\n1E2\n100\n1.0\n1"), {"categorical": "a"}, "a={1|1.0|007|7|100|1E2}; classes 0 1", ""),
    ("long ids beside an empty cell", csv("900000000000000001\n\n900000000000000002"), {"categorical": "a"}, "a={900000000000000001|900000000000000002|(missing)}; classes 0 1", ""),
    ("long ids beside nulls of Parquet", arrow([9 * 10**17 + 1, None, 9 * 10**17 + 2], pa.int64()), {"categorical": "a"}, "a={900000000000000001|900000000000000002|(missing)}; classes 0 1", ""),
    ("codes that nobody names", csv("007\n7\n\n010"), {}, "a={007|7|010|(missing)}; classes 0 1", "a: codes with leading zeros .numeric= reads"),
    ("codes far down in a file", csv("\n".join([*["7"] * 200_000, "07"])), {}, "a={07|7}; classes 0 1", "a: codes with leading zeros"),
    ("codes in UTF-16", csv("007\nü\n7").replace("ü", "10").encode("utf-16"), {}, "a={007|7|10}; classes 0 1", "a: codes"),
    ("codes in quotes", 'a,y\n"01",0\n"1",1\n', {}, "a={01|1}; classes 0 1", "a: codes"),
    ("codes in texts", arrow(["01", "1", None], pa.string()), {}, "a={01|1|(missing)}; classes 0 1", "a: codes"),
    ("codes as numbers", csv("007\n7\n\n010"), {"numeric": "a"}, "a=7 7 nan 10; classes 0 1", ""),
    ("long ids that nobody names", csv("900000000000000001\n\n900000000000000002"), {}, "a={900000000000000001|900000000000000002|(missing)}; classes 0 1", r"a: whole numbers beyond 2\^53 .numeric="),
    ("ids of 30 digits", csv(f"{10**30}\n{10**30 + 1}"), {}, f"a={{{10**30}|{10**30 + 1}}}; classes 0 1", "a: whole numbers beyond"),
    ("long ids as numbers", csv("900000000000000001\n900000000000000002"), {"numeric": "a"}, "a=9e+17 9e+17; classes 0 1", ""),
    ("long ids of Parquet that nobody names", arrow([9 * 10**17 + 1, None, 9 * 10**17], pa.int64()), {}, "a=9e+17 nan 9e+17; classes 0 1", r"a: different whole numbers beyond 2\^53 are equal"),
    ("nanoseconds, and a clock's digits", "a,b,y\n1577836800000001000,20200131235959123,0\n1577836800000002000,20200131235959124,1\n", {}, "a=1.57784e+18 1.57784e+18; b=2.02001e+16 2.02001e+16; classes 0 1", ""),
    ("floats of many digits", csv("0.12345678901234567890\n12345678901234567.5\n1e20\n0\n0.5"), {}, "a=0.123457 1.23457e+16 1e+20 0 0.5; classes 0 1", ""),
    ("times and dates with zeros", "a,b,c,y\n01/13/2020,2020-01-05,05.5,0\n01/14/2020,2020-01-06,06.25,1\n", {}, "a=0 1; b=0 1; c=5.5 6.25; classes 0 1", ""),
    ("equal numbers", csv("1\n1.0\n+1\n2.50\n2.5"), {"categorical": "a"}, "a={1|2.5}; classes 0 1", ""),
    ("equal numbers with decimal commas", csv("1\n1,0\n2,50\n2,5"), {"categorical": "a", **pandas(decimal=",")}, "a={1|2.5}; classes 0 1", ""),
    ("truth in two cases", csv("TRUE\nFalse\ntrue"), {"categorical": "a"}, "a={False|True}; classes 0 1", ""),
    # labels
    ("labels that a float would join", csv("1\n2\n3", "900000000000000001 900000000000000002 900000000000000002"), {}, "a=1 2 3; classes 900000000000000001 900000000000000002", ""),
    ("labels beside an empty cell", csv("1\n2\n3\n4", "900000000000000001 900000000000000002 ? 900000000000000002"), {"drop_unlabeled": True}, "a=1 2 4; classes 900000000000000001 900000000000000002", ""),
    ("labels with zeros", csv("1\n2\n3", "01 10 02"), {}, "a=1 2 3; classes 01 02 10", ""),
    ("labels that are equal numbers", csv("1\n2\n3\n4", "1.0 1 10 2e0"), {}, "a=1 2 3 4; classes 1 2 10", ""),
    ("letters for classes", csv("1\n2\n3", "T F N"), {}, "a=1 2 3; classes F N T", ""),
    ("labels that are floats", arrow([0, 1, 2, 3], None, [10.0, 9.0, -1.0, 9.0]), {}, "a=0 1 2 3; classes -1 9 10", ""),
    ("blanks around everything", " a , y \n 1 , no \n 2 , yes \n", {}, "a=1 2; classes no yes", ""),
    ("a label in another normal form", "a,gr\u00f6\u00dfe\n1,0\n2,1\n", {"label": "gro\u0308\u00dfe"}, "a=1 2; classes 0 1", ""),
    # headers
    ("no header", "39,State,no\n50,Self,yes\n", {**pandas(header=None), "label": 2}, "0=39 50; 1={Self|State}; classes no yes", ""),
    ("names that count", "0,1,2\n.5,6,0\n.7,8,1\n", {"label": "2"}, "0=0.5 0.7; 1=6 8; classes 0 1", ""),
    ("a trailing comma in every line", "a,y,\n1,0,\n2,1,\n", {}, "a=1 2; classes 0 1", "left out: Unnamed: 2"),
    ("names of rows", "a,y\nr1,1,0\nr2,2,1\n", pandas(index_col=0), "a=1 2; classes 0 1", "frame's index is left out"),
    ("kinds by name and glob", "c1,c2,n,y\n1,4,1.5,0\n2,4,2.5,1\n", {"categorical": ("c*",), "numeric": ("n",)}, "c1={1|2}; c2={4}; n=1.5 2.5; classes 0 1", "c2: one value in all rows"),
    ("names that are no printable line", b'"a\n b\x1b\xe2\x80\xa8c",y\n1,0\n2,1\n', {}, "a b\ufffd c=1 2; classes 0 1", ""),
    ("a separator that row 1 does not have", "weight, kg;y\n61.5;0\n70.25;1\n", {}, "weight, kg=61.5 70.25; classes 0 1", ""),
    ("pipes and quotes", b'"a;b,c"|"y"\r\n"say ""hi"", you"|"0"\r\n"two\nlines"|"1"', {}, 'a;b,c={say "hi", you|two\nlines}; classes 0 1', ""),
    ("Excel's first line in quotes", '"sep=;"\na;y\n1;0\n2;1\n', {}, "a=1 2; classes 0 1", ""),
    ("Excel's first line", "sep=;\na,b;y\n1;0\n2;1\n", {}, "a,b=1 2; classes 0 1", ""),
    ("Excel's first line, filled up", "sep=;;\na;b;y\n1;2;0\n2;2;1\n", {}, "a=1 2; b=2 2; classes 0 1", ""),
    ("Excel's first line with a blank", "sep= ;\na;y\n1;0\n2;1\n", {}, "a=1 2; classes 0 1", ""),
    ("the same in UTF-16", "sep=\t\na;b,c\ty\n1\t0\n2\t1\n".encode("utf-16"), {}, "a;b,c=1 2; classes 0 1", ""),
    ("more commas than columns", "n (a, b, 2024)\tm (c, d)\ty\n1\t3\t0\n2\t4\t1\n", {}, "n (a, b, 2024)=1 2; m (c, d)=3 4; classes 0 1", ""),
    # encodings
    ("UTF-16 without its mark", "a,y\n1,0\n2,1\n".encode("utf-16-le"), {}, "a=1 2; classes 0 1", ""),
    ("UTF-16", "a,y\nü,0\nv,1\n".encode("utf-16"), {}, "a={v|ü}; classes 0 1", ""),
    ("gzip by no name", gzip.compress(b"a,y\n1,0\n2,1\n"), {}, "a=1 2; classes 0 1", ""),
    # numbers and their notations
    ("decimal commas beside question marks", csv("0,5\n?\n3"), pandas(decimal=","), "a=0.5 nan 3; classes 0 1", ""),
    ("an array of numbers and one of labels", {"x": np.arange(6, dtype=np.float16).reshape(3, 2), "y": np.array([3, 5, 3], ">i2")}, {}, "x0=0 2 4; x1=1 3 5; classes 3 5", ""),
    ("telephone numbers", csv("491701234567\n491701234568"), {}, "a=4.91701e+11 4.91701e+11; classes 0 1", "a: whole numbers above 16,777,216 are rounded"),
    ("numbers that vanish", csv("1e-50\n2e-50"), {}, "a=0 0; classes 0 1", "a: different values are equal as float32"),
    # words that only resemble numbers or dates
    ("one percentage among words", csv("5%\nlow\nhigh\nnone"), {}, "a={5%|high|low|none}; classes 0 1", ""),
    ("ranges", csv("0-4\n5-9\n10-14\n15+"), {}, "a={0-4|10-14|15+|5-9}; classes 0 1", ""),
    ("two dates among words", csv("2020-01-02\n2020-01-03\nnever"), {}, "a={2020-01-02|2020-01-03|never}; classes 0 1", ""),
    ("words that begin as months do", csv("March Street 20\nmarket 12\nmay be\nSunday"), {}, "a={March Street 20|Sunday|market 12|may be}; classes 0 1", ""),
    # dates
    ("ISO days", csv("2020-02-28\n\n2020-03-01"), {}, "a=0 nan 2; classes 0 1", "a: days since 2020-02-28"),
    ("days that only day-first reads", csv("28.2.2020\n1.03.2020"), {}, "a=0 2; classes 0 1", "a: days since 2020-02-28"),
    ("a day for none", csv("2020-01-01\n9999-12-31"), {}, "a=0 2.91463e+06; classes 0 1", "a: .*; 9999-12-31 may stand for none"),
    ("moments", csv("2020-01-01T12:00:00Z\n2020-01-01T01:00:00+01:00"), {}, "a=0.5 0; classes 0 1", ""),
    ("named months", csv("Jan 1, 2020\nDec 31, 2020"), {}, "a=0 365; classes 0 1", ""),
    ("Arrow's days", arrow(DAYS, pa.date32()), {}, "a=0 nan 2; classes 0 1", "a: days since 2020-02-28"),
    ("durations", arrow([3600, 7200, None], pa.duration("s")), {}, "a=0.0416667 0.0833333 nan; classes 0 1", "a: days"),
)  # fmt: skip

REFUSED = (
    ("words among numbers", csv("1\n-\n3"), {}, "row 2, column 'a' has '-', and other rows hold numbers: .* na_values= .* categorical="),
    ("mostly one number", csv("0\n0\n0\nx\ny\nz"), {}, "row 4, column 'a' has 'x', and other rows hold numbers"),
    ("words among dates", csv("2020-01-01\n2020-01-02\n2020-01-03\nsoon"), {}, "row 4, column 'a' has 'soon', and other rows hold dates"),
    ("identifiers", csv("\n".join(f"id{k}" for k in range(21))), {}, "'a' has 21 distinct texts in 21 rows, like an identifier .* drop=, or in categorical="),
    ("a word where numbers must be", csv("1\n\nhigh"), {"numeric": "a"}, "row 3, column 'a' has 'high', which is no number"),
    ("infinity", csv("1\n-inf\n3"), {}, "row 2, column 'a' has -inf, which is infinite"),
    ("too large for float64", csv("1\n1e400"), {}, "row 2, column 'a' has inf, which is infinite or too large"),
    ("too large for float32", csv("1\n1e39"), {}, r"row 2, column 'a' has 1e\+39, which is too large"),
    # labels
    ("a label is missing", csv("1\n2\n3\n4", "u ? v u"), {}, "'y' is the label and is missing in 1 of 4 rows, first in row 2: fill it, or drop_unlabeled=True"),
    ("labels in two cases", csv("1\n2\n3", "Yes yes no"), {}, "'y' has the labels 'Yes' and 'yes', which look alike"),
    ("one class", csv("1\n2\n3", "u u u"), {}, "'y' is the label and is 'u' in all rows"),
    ("a number to predict", csv("1\n2\n3", "0.5 1.5 2"), {}, "a regression target: give task=regression"),
    ("a number of few values", csv("1\n2\n3\n4", "0 0 0 1"), {"bins": 3}, "not make 3 classes of it: 3 of 4 rows have the value 0: give fewer bins="),
    ("one number", csv("1\n2", "0.5 0.5"), {"bins": 2}, "'y' is the label and is '0.5' in all rows"),
    ("a word among numbers to predict", csv("1\n2\n3", "0.5 high 2"), {"bins": 2}, "row 2, column 'y' has the label 'high', which is no number"),
    ("101 classes", arrow(range(101), None, range(101)), {}, "101 distinct values, more than 100 classes"),
    ("labels in two spellings of truth", csv("1\n2\n3\n4", "1 0 True False"), {}, "'y' has the labels '1' and 'True', which look alike or mean the same"),
    ("labels with a period", csv("1\n2\n3", "<=50K <=50K. >50K"), {}, "'y' has the labels '<=50K' and '<=50K.', which look alike"),
    ("labels yes and 1", csv("1\n2\n3", "yes 1 0"), {}, "'y' has the labels 'yes' and '1'"),
    ("labels with and without zeros", csv("1\n2\n3", "01 1 2"), {}, "'y' has the labels '01' and '1'"),
    # headers
    ("a wrong separator", "a;b,y;c\n1;2,0;3\n2;3,1;4\n", {}, "unknown column in label= 'y'.* ';' was taken for the separator of its 3 columns; ',' would make 2: give options={\"sep\": \",\"}"),
    ("one name too many", "a|b|y\n1|0\n2|1\n", {}, r"'y' is the label and is missing in 2 of 2 .*'\|' was taken for the separator of its 3 columns .its second line has 2"),
    ("one field too many", "a,b,y\n1,u,0\n2,v,w,1\n", {}, "Expected 3 fields in line 3, saw 4.: correct it.* ',' was taken for the separator"),
    ("another separator for numbers", "a,x;b;y\n1,5;2;0\n2,5;3;1\n", {}, "'a,x' has '1,5'.*',' would make 2"),
    ("a line of the file's own", "a;y\nr1;1;0\nr2;2;1\n", {}, "more fields than its first line, 'a;y'"),
    ("no header", "39,State,no\n50,Self,yes\n", {}, "unknown column in label= 'y'.*'39' one of them: give options={\"header\": null}"),
    ("numbers only", "39,7,1\n50,8,0\n", {"label": "1"}, "has numbers in its first line.* options={\"header\": null} if it is a row"),
    ("no header, two separators", "1,5;0,5\n2,5;1,5\n", {**pandas(header=None), "label": 0}, 'no header decides: give options={"sep": ","} or options={"sep": ";"}'),
    ("two headers", "a,b,y\n1,u,0\n2,v,1\na,b,y\n3,u,0\n", {}, "row 3, column 'y' has its own name: the header is repeated"),
    ("a comment before the header", "# of 2020\na,y\n1,0\n2,1\n", {}, '# of 2020.* options={"skiprows": 1} if that line is a comment'),
    ("names of rows without a header", "a,y\nr1,1,0\nr2,2,1\n", {}, 'rows of more fields than its first line, .*options={"index_col": 0} if they begin'),
    ("the label twice", "y,a,y\n0,1,0\n1,2,1\n", {}, "two columns are named 'y'"),
    ("columns of one name", TWO_NAMES, {}, "two columns are named 'a'"),
    ("separated by blanks", "a  y\n1  0\n2  1\n", {}, 'It has but one column: give options={"sep"'),
    ("nothing", b"", {}, "is empty"),
    # notations that differ in value
    ("thousands or decimals", csv("1,000\n2,500\n3,125"), {}, 'row 1, column \'a\' has \'1,000\'.*give options={"decimal": ","} or options={"thousands": ","}, or name it in categorical='),
    ("decimal commas", csv("0,5\n1,25\n3"), {}, r'notation that is not read: give options={"decimal": ","}, or name'),
    ("points where commas are", csv("1.500\n2.500\n3.500"), pandas(decimal=","), r'give options={"decimal": "."} or options={"thousands": ".", "decimal": ","}, or'),
    ("notations that differ by column", MIXED, {}, "'rate' has '0,5'.*the file mixes notations .column 'price' writes .*rewrite one of the two"),
    ("thousands in one column, decimals in another", "a;b;y\n1,000;0,5;0\n2,000;0,25;1\n", {}, r"'a' has '1,000'.*give options={\"decimal\": \",\"}, or name"),
    ("notations that differ by row", csv("1.000,5\n2,000.5\n3"), {}, "write them as plain numbers"),
    ("amounts of accountants", csv("125.73\n(1,120.00)\n(7.50)"), {}, r"row 2, column 'a' has '\(1,120.00\)', a number in a notation"),
    ("a minus behind", csv("125.73\n120.00-\n7.50"), {}, "row 2, column 'a' has '120.00-', a number in a notation"),
    ("a unit in one of many", csv("\n".join([*map(str, range(9)), *(f"{k} kg" for k in range(30))])), {}, "like an identifier .one is '0 kg'"),
    ("percent", csv("5%\n10 %\n2.5%"), {}, "row 1, column 'a' has '5%', .*write them as plain numbers"),
    ("days or months first", csv("01/02/2020\n03/04/2020"), {}, r'several ways: .*options={"parse_dates": \["a"\], "date_format": "%d/%m/%Y"} or give .*"%m/%d/%Y"}'),
    ("the same in Parquet", arrow(["01/02/2020", "03/04/2020", None], pa.string()), {}, r"pandas.to_datetime\(format='%d/%m/%Y'\)"),
    ("a day that is none", csv("01.03.2020\n31.02.2020\n02.03.2020"), {}, "row 2, column 'a' has '31.02.2020', .*: write all as 2020-01-31.* na_values="),
    ("a zero date", csv("2020-01-01\n2020-01-02\n0000-00-00\n2020-01-02"), {}, "row 3, column 'a' has '0000-00-00', .*na_values="),
    ("dates of two forms", csv("2020-01-01\n2020-01-02\n1/13/2020"), {}, "row 3, column 'a' has '1/13/2020', .* unlike '2020-01-01' of row 1"),
    ("a zone in some rows", csv("2020-01-01T00:00:00\n2020-01-01T00:00:00+02:00"), {}, r"row 2, column 'a' has '2020-01-01T00:00:00\+02:00', which has a time zone"),
    ("days that no clock holds", arrow([2**31 - 1, 0, 1], pa.date32()), {}, "'a' holds dates out of bounds"),
    # other types and files
    ("lists", arrow([[1], [2], []], pa.list_(pa.int8())), {}, "'a' holds values of type ndarray, neither number nor text"),
    ("groups without a value", "a,b,y\n1,p,0\n2,,1\n", {"groups": "b"}, "row 2, column 'b' names groups and has no value"),
    ("Latin-1", "a,y\nv,0\nü,1\n".encode("latin-1"), {}, "is not UTF-8 text .* in line 3: 'ü,1' if it is Latin-1.*options={\"encoding\": \"latin-1\"}"),
    ("no text", b"\x0b\x08\x80a\n\xff\xfe\x02", {}, "is of a format that is not known, and no text"),
    ("zero bytes", bytes(5000), {}, "is full of zero bytes, as after an interrupted copy"),
    ("a web page", b"<!DOCTYPE html>\n<title>Sign in</title>", {}, "is a web page, perhaps in place of the download"),
    ("a cube", {"x": np.ones((2, 2, 2)), "y": np.ones(2)}, {}, r"array 'x' has shape \(2, 2, 2\)"),
    ("complex numbers", {"a": np.ones(2, complex), "y": np.ones(2)}, {}, "'a' is of type complex128"),
    ("a matrix too wide", {"x": np.ones((2, 100_001), bool), "y": np.arange(2)}, {}, "has 100,001 columns, more"),
)  # fmt: skip

# options that do not fit a table of the columns a, b and y, and words of the line
OPTIONS = (
    ({"numeric": "a", "categorical": "*"}, "categorical='a' is also in numeric="),
    ({"drop": "aa"}, "unknown column in drop= 'aa': did you mean 'a'"),
    ({"label": "Y"}, "own.data: unknown column in label= 'Y': did you mean 'y'"),
    ({"label": True}, "label=True: give the name of a column"),
    ({"encoding": "one-hot"}, "unknown encoding 'one-hot': did you mean 'onehot'"),
    ({"max_categories": 0}, "max_categories=0.*: give a"),
    ({"bins": 1}, "bins=1 makes one class: give 2 or more"),
    ({"na_values": None}, "na_values=None: give words, or numbers"),
    ({"positive": "bade"}, r"unknown class \(positive=\) 'bade': choose from 0, 1"),
    ({"label": "b", "positive": "u"}, "positive='u': .* has 3 classes, not two"),
    ({"test_file": "test.csv"}, "test.csv is missing"),
    ({"test_file": "own.data"}, "is the table itself: give another file"),
    (pandas(converters={"a": "eval"}), "unknown option of pandas.read_csv 'converters'"),
    (pandas(engine="pyarrow.evil"), "engine='pyarrow.evil': give 'c' or 'python'"),
    (pandas(on_bad_lines=print), "is no JSON object of options"),
    (
        pandas(encoding="klingon"),
        "unknown encoding: klingon.*give other options= of pandas.read_csv",
    ),
)

# of a training and a test file: their content, options, and what they are read as or refused with
TESTED = (
    ("truth, and 1 and 0", csv("true\nfalse"), csv("1\n0\n"), {}, "a=1 0 1 0 nan; classes 0 1"),
    ("days before the first training day", csv("2020-02-01\n2020-02-03"), csv("2020-01-05\n2020-02-01"), {}, "a=0 2 -27 0; classes 0 1"),
    ("numbers, and texts of numbers", arrow([1, 2, None], pa.int32()), csv("0.5\n?\n3"), {}, "a=1 2 nan 0.5 nan 3; classes 0 1"),
    ("a word among days", csv("2020-02-01\n2020-02-03"), csv("2020-01-05\nsoon"), {}, "test.csv row 2, column 'a' has 'soon', and other rows hold dates"),
    ("a category of test rows alone", csv("u\nv"), csv("u\nw\n"), {}, "a={u|v}; classes 0 1"),
    ("the same as codes", csv("u\nv"), csv("u\nw\n"), {"encoding": "codes"}, "a=code 3; classes 0 1"),
    ("a column lacks", csv("1\n2"), "y\n0\n1\n", {}, "test.csv lacks 'a': give it the columns of .*own.data"),
    ("a label", csv("1\n2"), csv("1\n2", "0 2"), {}, "test.csv row 2, column 'y' has the label '2': a test row needs one"),
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
    said = [*data.notes, *(f"{column.name}: {column.note}" for column in data.sources)]
    assert all(any(re.search(words, note) for note in said) for words in notes.split("|"))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_an_awkward_table_is_refused_in_one_line(tmp_path, case):
    _, content, options, message = case
    line = refused(read, tmp_path, content, options, match=message)
    assert str(tmp_path / "own.data") in line


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=str)
def test_an_option_that_does_not_fit_is_refused_in_one_line(tmp_path, options, message):
    refused(read, tmp_path, "a,b,y\n1,u,0\n2,v,1\n3,w,0\n", options, match=message)


@pytest.mark.parametrize("case", TESTED, ids=lambda case: case[0])
def test_a_test_file_is_read_as_the_training_file_is_or_refused(tmp_path, case):
    _, content, tested, options, expected = case
    written(tmp_path, tested, "test.csv")
    options = {"test_file": "test.csv", **options}
    if expected.startswith("a="):
        assert summary(read(tmp_path, content, options)) == expected
    else:
        refused(read, tmp_path, content, options, match=expected)
