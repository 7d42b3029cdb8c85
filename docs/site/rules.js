// The filters of the table of rules. Without a script the table shows all rows; a filter is kept in the address of the page.
const table = document.querySelector("table.rules");
const rows = [...table.tBodies[0].rows];

// docs/judge-rules.md#ID is the link to a rule in the API and in the repository
const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
if (rows.includes(named)) location.replace(`${named.id}/`);

const features = [...new Set(rows.map((row) => row.cells[4].textContent))];
const choices = {
  level: ["must", "should", "may", "practice"],
  revision: ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
  transport: ["http", "stdio", "websocket"],
  feature: features,
};

const form = document.createElement("form");
form.className = "rules-filter";
form.innerHTML = '<label class="words">Words<input type="search" name="words"></label>';
for (const [name, values] of Object.entries(choices)) {
  const select = document.createElement("select");
  select.name = name;
  select.append(new Option("any", ""), ...values.map((value) => new Option(value, value)));
  const label = document.createElement("label");
  // the name alone: a label around a list would be read with what is chosen
  select.ariaLabel = name[0].toUpperCase() + name.slice(1);
  label.append(select.ariaLabel, select);
  form.append(label);
}
const count = document.createElement("output");
form.append(count);
table.before(form);

function passes(row, { words, level, revision, transport, feature }) {
  const at = row.dataset.at.split(" ").map((pair) => pair.split(":"));
  const text = `${row.textContent} ${row.dataset.words}`.toLowerCase();
  return (
    at.some(([of, is]) => (!revision || of === revision) && (!level || is === level)) &&
    (!transport || row.dataset.over.split(" ").includes(transport)) &&
    (!feature || row.cells[4].textContent === feature) &&
    words.toLowerCase().split(/\s+/).every((word) => text.includes(word))
  );
}

function show() {
  const wanted = Object.fromEntries(new FormData(form));
  for (const row of rows) row.hidden = !passes(row, wanted);
  count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rules`;
  const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
}

for (const [name, value] of new URLSearchParams(location.search)) if (form.elements[name]) form.elements[name].value = value;
form.addEventListener("input", show);
form.addEventListener("submit", (event) => event.preventDefault());
show();
