// Settings: what the user may choose, kept in the browser.

const $ = (id) => document.getElementById(id);

const KEPT = ['system', 'temperature', 'top_p', 'top_k', 'repeat_penalty',
  'max_tokens', 'seed'];
// Not kept: a key is for this visit only.
const NUMBERS = KEPT.slice(1);

function readKept(name) {
  try {
    return localStorage.getItem(`weft-${name}`);
  } catch {
    return null;  // the browser keeps nothing
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`weft-${name}`, value);
  } catch {
    // As above.
  }
}

// The fields of a request; empty ones are left to the server.
function chosenFields() {
  const fields = { model: $('model').value };
  for (const name of NUMBERS) {
    const value = $(name).value;
    if (value !== '' && $(name).checkValidity()) fields[name] = Number(value);
  }
  return fields;
}

function requestHeaders() {
  const headers = { 'Content-Type': 'application/json' };
  const key = $('api_key').value.trim();
  if (key) headers.Authorization = `Bearer ${key}`;
  return headers;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

// What the server says of the chosen model, null if nothing.
async function modelProperties() {
  const model = encodeURIComponent($('model').value);
  const response = await fetch(`/props?model=${model}`,
    { headers: requestHeaders() });
  if (!response.ok) return null;
  const properties = await response.json();
  takeSuggested(properties.suggested_sampling ?? {});
  return properties;
}

// What the model's authors suggest takes the place of what the user did not
// choose, and is said.
function takeSuggested(suggested) {
  const taken = [];
  for (const [name, value] of Object.entries(suggested)) {
    if (!NUMBERS.includes(name) || readKept(name) !== null) continue;
    $(name).value = value;
    taken.push(`${name.replace('_', ' ')} ${value}`);
  }
  $('suggested').hidden = taken.length === 0;
  $('suggested').textContent = `As the model suggests: ${taken.join(', ')}`;
}

function beginSettings() {
  for (const name of KEPT) {
    const value = readKept(name);
    if (value !== null) $(name).value = value;
    $(name).addEventListener('input', () => keep(name, $(name).value));
  }
  const dark = matchMedia('(prefers-color-scheme: dark)');
  setTheme(readKept('theme') ?? (dark.matches ? 'dark' : 'light'));
  $('theme').addEventListener('click', () => {
    const theme =
      document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    setTheme(theme);
    keep('theme', theme);
  });
  $('show-settings').addEventListener('click', () => {
    $('settings').hidden = !$('settings').hidden;
    $('show-settings').setAttribute('aria-expanded', !$('settings').hidden);
  });
  $('settings').addEventListener('submit', (event) => event.preventDefault());
}
