// The module of every widget: finds the views of its kind in the page, or takes them once from the kernel's
// model of them (see view_module.py). The text of the views is long: it is sent, read and compiled once.

const KEPT = Symbol.for("lance_nb.view_modules");

/** @param {Object} model the widget's: `_views` names the model that holds the text, `_views_key` its content */
function views(model) {
  const kept = (globalThis[KEPT] ??= new Map());
  const key = model.get("_views_key");
  if (!kept.has(key)) {
    const coming = loaded(model);
    kept.set(key, coming);
    coming.catch(() => kept.delete(key)); // another widget tries again
  }
  return kept.get(key);
}

async function loaded(model) {
  const held = await model.widget_manager.get_model(model.get("_views").replace("IPY_MODEL_", ""));
  const url = URL.createObjectURL(new Blob([held.get("module")], { type: "text/javascript" }));
  try {
    const module = await import(url);
    const style = document.createElement("style");
    style.textContent = held.get("style");
    document.head.append(style);
    return module.default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

const loader = {
  initialize({ model }) {
    views(model).catch(() => {}); // begun while the view is on its way, which says what is wrong
  },
  async render({ model, el }) {
    return (await views(model)).render({ model, el });
  },
};

export default loader;
