"use strict";
const table = document.getElementById("issues"), body = table.tBodies[0], rows = [...body.rows];
const words = document.getElementById("words"), state = document.getElementById("state");
const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));

function show() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const fits = (!state.value || row.dataset.state === state.value) && wanted.every(word => texts.get(row).includes(word));
    row.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  document.getElementById("count").textContent = shown + " of " + rows.length + " shown";
}

function value(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}

function sort(heading, column) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  rows.sort((a, b) => {
    const first = value(a, column), second = value(b, column);
    if (first === "" || second === "") return first === second ? 0 : first === "" ? 1 : -1;
    const order = typeof first === "number" ? first - second : first.localeCompare(second, "en", {numeric: true});
    return down ? -order : order;
  });
  body.append(...rows);
}

words.addEventListener("input", show);
state.addEventListener("change", show);
[...table.tHead.rows[0].cells].forEach((heading, column) =>
  heading.firstElementChild.addEventListener("click", () => sort(heading, column)));
show();
