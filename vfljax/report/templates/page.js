// Tables sort by a click on a header and filter by a text. Numbers within words sort as numbers, and what is no
// figure comes last.
const pieces = (text) => text.replaceAll(",", "").split(/([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)/i);
const blank = (text) => text === "" || text === "-";
function compare(one, other) {
  const [left, right] = [pieces(one), pieces(other)];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const order = i % 2 ? left[i] - right[i] : left[i].localeCompare(right[i]);
    if (order) return order;
  }
  return left.length - right.length;
}
for (const head of document.querySelectorAll(".sorts thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  head.scope = "col";
  button.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], column = head.cellIndex;
    const falls = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const keyed = [...body.rows].map((row) => [row.cells[column].textContent.trim(), row]);
    keyed.sort(
      ([one], [other]) => blank(one) - blank(other) || (falls ? -1 : 1) * compare(one, other),
    );
    body.append(...keyed.map(([, row]) => row));
  });
}
for (const field of document.querySelectorAll("input[type=search]"))
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of field.nextElementSibling.querySelectorAll("tbody tr"))
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
