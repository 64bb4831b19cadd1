"use strict";
const sets = JSON.parse(document.getElementById("sets").textContent);
const field = document.getElementById("search");
const parts = [...document.querySelectorAll("[data-part]")];
const has = (set, rank) => set.split(",").some((range) => {
  const [first, last] = range.split("-");
  return range !== "" && BigInt(first) <= rank && rank <= BigInt(last ?? first);
});
const own = (part) => (part.matches("details") ? part.querySelector("summary") : part).textContent.toLowerCase();
function search() {
  const text = field.value.trim().toLowerCase();
  // A page of one process has no ranks.
  const number = sets.length === 0 ? null : text.match(/^(?:rank\s*)?(\d{1,20})$/);
  const rank = number && BigInt(number[1]);
  const found = new Set();
  for (const part of parts) {
    // Without a set it is not known which ranks it has.
    const set = part.dataset.set === undefined ? null : sets[part.dataset.set];
    const of = rank !== null && (set === null || has(set, rank));
    const reads = own(part).includes(text);
    if (text === "" || of || reads) {
      found.add(part);
      for (let up = part.parentElement; up; up = up.parentElement) {
        if (up.matches("[data-part]")) {
          found.add(up);
          if (text !== "") up.open = true;
        }
      }
      if (reads && rank === null) part.querySelectorAll("[data-part]").forEach((inner) => found.add(inner));
    }
  }
  let shown = 0;
  for (const part of parts) {
    part.hidden = !found.has(part);
    shown += part.hidden ? 0 : 1;
  }
  document.getElementById("found").textContent = text === "" ? "" : `${shown} of ${parts.length} entries`;
}
field.addEventListener("input", search);
search();
