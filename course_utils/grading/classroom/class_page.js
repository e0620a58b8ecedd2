// Every table: sort it by a column, show only some rows.
const values = (row, i) => {
  const words = row.cells[i].textContent.trim(), n = parseFloat(words);
  return isNaN(n) ? words.toLowerCase() : n;
};
for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0], rows = [...body.rows];
  table.querySelectorAll("thead th").forEach((head, i) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const x of table.querySelectorAll("thead th")) x.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      rows.sort((a, b) => {
        const x = values(a, i), y = values(b, i), kinds = typeof x === typeof y;
        const order = kinds ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? -1 : 1;
        return up ? order : -order;
      });
      body.replaceChildren(...rows);
    };
  });
  const label = document.createElement("label"), field = document.createElement("input");
  label.append("Show only rows with ", field);
  field.type = "search";
  field.oninput = () => {
    const word = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(word);
  };
  table.parentNode.before(label);
}
