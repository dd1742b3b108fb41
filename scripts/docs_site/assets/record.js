// The record's table: shows the rows that every choice and every word of the text fit.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.record-filter");
  if (!form) return;
  const choices = [...form.querySelectorAll("select")];
  const text = form.querySelector("input");
  const rows = [...document.querySelectorAll("#record tbody tr")];
  const update = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const said = row.textContent.toLowerCase();
      const fits =
        words.every((word) => said.includes(word)) &&
        choices.every((c) => !c.value || row.cells[c.dataset.column].textContent === c.value);
      row.hidden = !fits;
      shown += fits;
    }
    form.querySelector("output").textContent = `${shown} of ${rows.length} numbers`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  update(); // a browser may have kept what was typed
});
