"use strict";
{
  const table = document.querySelector("table"), body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const search = document.querySelector("search"), box = search.querySelector("input");
  const found = search.querySelector("output");
  const NAMES = 4; // columns of a row that are searched: name, type, shape, element type

  const rows = [...body.rows].map((element, index) => {
    const names = [...element.cells].slice(0, NAMES).map(cell => cell.textContent);
    return { element, index, text: names.join(" ").toLowerCase() };
  });

  function find() {
    const words = box.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const row of rows) {
      row.element.hidden = !words.every(word => row.text.includes(word));
      count += !row.element.hidden;
    }
    found.textContent = `${count} of ${rows.length}`;
  }

  // Returns a row's sort key. If the row has no value in the column, returns null, which sorts last.
  function key(row, column, isNumber) {
    const cell = row.element.cells[column];
    if (!cell || cell.colSpan > 1) return null;
    const text = cell.textContent;
    if (!isNumber) return text;
    const number = Number(text.replaceAll(",", ""));
    return Number.isNaN(number) ? null : number;
  }

  const words = new Intl.Collator("en", { numeric: true });
  function compare(a, b) {
    return typeof a === "number" ? a - b : words.compare(a, b);
  }

  // Sorts the rows. Without a direction, and for equal keys, uses the order of the file.
  function sort(column, direction) {
    const isNumber = headings[column].classList.contains("number");
    const keyed = rows.map(row => ({ row, key: direction ? key(row, column, isNumber) : null }));
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null)
        return (a.key === null) - (b.key === null) || a.row.index - b.row.index;
      return direction * compare(a.key, b.key) || a.row.index - b.row.index;
    });
    body.append(...keyed.map(({ row }) => row.element));
  }

  const NEXT = { none: ["ascending", 1], ascending: ["descending", -1], descending: ["none", 0] };
  function press(heading) {
    const [state, direction] = NEXT[heading.getAttribute("aria-sort") ?? "none"];
    for (const other of headings) other.removeAttribute("aria-sort");
    if (direction) heading.setAttribute("aria-sort", state);
    sort(headings.indexOf(heading), direction);
  }

  for (const heading of headings.filter(heading => heading.dataset.sorts !== undefined)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => press(heading));
    heading.append(button);
  }
  box.addEventListener("input", find);
  search.hidden = false;
  find();
}
