/* The choice of language, copying, trying a request, and finding an operation. The pages can be read without. */
(() => {
  const root = document.documentElement;
  const LANGUAGE = 'docs-language';

  const remembered = () => {
    try {
      return localStorage.getItem(LANGUAGE);
    } catch {
      return null;
    }
  };
  const choose = (language) => {
    root.dataset.language = language;
    for (const button of document.querySelectorAll('[data-choose]'))
      button.setAttribute('aria-pressed', String(button.dataset.choose === language));
    try {
      localStorage.setItem(LANGUAGE, language);
    } catch {
      /* The choice holds for this page. */
    }
  };
  choose(['curl', 'typescript', 'python'].find((one) => one === remembered()) ?? 'curl');

  const copy = async (pre, button) => {
    await navigator.clipboard.writeText(pre.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  };
  for (const pre of document.querySelectorAll('.code pre')) {
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Copy' });
    button.className = 'copy';
    button.addEventListener('click', () => void copy(pre, button));
    const frame = Object.assign(document.createElement('div'), { className: 'block' });
    if (pre.dataset.language) frame.dataset.language = pre.dataset.language;
    pre.replaceWith(frame);
    frame.append(pre, button);
  }

  /* Kept for the page alone: a key must not outlive it. */
  let key = '';
  const element = (name, props = {}, ...children) => {
    const made = Object.assign(document.createElement(name), props);
    made.append(...children);
    return made;
  };
  const labeled = (text, field) => element('label', {}, text, field);
  const pretty = (text) => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  };
  const send = async ({ method, path, body, output }) => {
    output.hidden = false;
    output.textContent = 'Sending…';
    const headers = {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    };
    try {
      const response = await fetch(path, { method, headers, body, credentials: 'omit' });
      output.textContent = `${response.status} ${response.statusText}\n${pretty(await response.text())}`;
    } catch (error) {
      output.textContent = `The request was not sent: ${error.message}`;
    }
  };
  const form = ({ method, path, body }) => {
    const keyField = element('input', { type: 'password', autocomplete: 'off', value: key });
    const pathField = element('input', { type: 'text', value: path, spellcheck: false });
    const bodyField = body === undefined ? null : element('textarea', { value: body, rows: 8, spellcheck: false });
    const output = element('pre', { hidden: true, tabIndex: 0, role: 'status' });
    const fields = [labeled('API key', keyField), labeled(`${method} path`, pathField)];
    if (bodyField) fields.push(labeled('Body', bodyField));
    const submit = element('button', { type: 'submit', textContent: 'Send request' });
    const made = element('form', { className: 'trial' }, ...fields, submit, output);
    made.addEventListener('submit', (event) => {
      event.preventDefault();
      key = keyField.value.trim();
      void send({ method, path: pathField.value, body: bodyField?.value, output });
    });
    return made;
  };

  document.addEventListener('click', ({ target }) => {
    const button = target.closest?.('[data-choose], .try');
    if (!button) return;
    if (button.dataset.choose) return choose(button.dataset.choose);
    const open = button.closest('.code').querySelector('.trial');
    if (open) open.remove();
    else button.parentElement.after(form(button.dataset));
    button.setAttribute('aria-expanded', String(!open));
  });

  const links = [...document.querySelectorAll('nav details a')];
  const search = document.querySelector('nav input[type=search]');
  search.hidden = false;
  const wasOpen = new Map([...document.querySelectorAll('nav details')].map((list) => [list, list.open]));
  search.addEventListener('input', () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const link of links) {
      const text = `${link.textContent} ${link.hash}`.toLowerCase();
      link.parentElement.hidden = !words.every((word) => text.includes(word));
    }
    for (const [list, open] of wasOpen) {
      const some = list.querySelector('li:not([hidden])') !== null;
      list.hidden = !some;
      list.open = search.value === '' ? open : some;
    }
  });

  /* Links of the reference before this one: #/Connections/create_connection. */
  const old = /^#\/[^/]+\/(\w+)$/.exec(location.hash);
  const now = old && links.find((link) => link.hash === `#${old[1]}`);
  if (now) location.replace(now.href);
})();
