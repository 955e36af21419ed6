"use strict";
const table = document.getElementById("bugs"), rows = [...table.tBodies[0].rows];
const words = document.getElementById("words"), state = document.getElementById("state"), changed = document.getElementById("changed");
const texts = new Map(rows.map(row => [row, row.cells[0].textContent.toLowerCase() + " " + row.cells[1].textContent.toLowerCase()]));

function show() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const fits = (!state.value || row.dataset.state === state.value) && (!changed.checked || row.dataset.changed === "yes")
      && wanted.every(word => texts.get(row).includes(word));
    row.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  document.getElementById("count").textContent = shown + " of " + rows.length + " shown";
}

words.addEventListener("input", show);
state.addEventListener("change", show);
changed.addEventListener("change", show);
show();
