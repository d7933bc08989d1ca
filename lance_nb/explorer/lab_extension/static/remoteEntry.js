// "Explore with lance_nb" in the context menu of JupyterLab's file browser, for folders of Lance,
// and the button "Beside" of the explorer, which shows it in a tab beside the notebook.
//
// A prebuilt extension without a bundler. JupyterLab loads this file as a script, calls `init` with
// the modules that all extensions share, and `get` for the plugins (see its bootstrap script). A
// shared module is `{version: {get}}`, where `get` gives a promise of a function that returns the
// module.
//
// The menu writes a notebook beside the folder, opens it and runs its cell. The name of the folder
// is a constant in that cell: JSON's notation of a text is also Python's.
//
// The explorer asks for its tab by an event that bubbles to the page. The tab is JupyterLab's own
// view of the output of a cell, which it makes below the notebook; it is moved to the right.

(() => {
  const NAME = "lance-nb";
  const COMMAND = "lance-nb:explore";
  const OUTPUT_VIEW = "notebook:create-output-view";
  const BESIDE = "lance-nb:beside";
  const FILE_BROWSER = "@jupyterlab/filebrowser";
  /** @type {Record<string, Record<string, {get: () => Promise<() => Lnb.Json>}>>} */
  let shared = {};

  /** The module of a name that JupyterLab shares, of whatever version. @param {string} name */
  async function sharedModule(name) {
    const versions = Object.values(shared[name] ?? {});
    return versions.length ? (await versions[0].get())() : null;
  }

  /** @param {string} folder the name of the folder of a dataset, beside the notebook */
  function notebookOf(folder, /** @type {Lnb.Json} */ kernel) {
    const source = `import lance_nb\n\nlance_nb.explore(${JSON.stringify(folder)})`;
    const cell = { cell_type: "code", execution_count: null, metadata: {}, outputs: [], source };
    const metadata = kernel ? { kernelspec: kernel } : {};
    return { cells: [{ ...cell, id: "explore" }], metadata, nbformat: 4, nbformat_minor: 5 };
  }

  /** The kernel that new notebooks have. @param {Lnb.Json} app */
  async function defaultKernel(app) {
    await app.serviceManager.kernelspecs.ready;
    const { default: name, kernelspecs } = app.serviceManager.kernelspecs.specs ?? {};
    const spec = kernelspecs?.[name];
    return spec && { name, display_name: spec.display_name, language: spec.language };
  }

  /** @param {Lnb.Json} app @param {string} path of the folder */
  async function explore(app, path) {
    const { contents } = app.serviceManager;
    const slash = path.lastIndexOf("/");
    const beside = slash < 0 ? path.slice(0, path.indexOf(":") + 1) : path.slice(0, slash);
    const folder = path.slice(slash < 0 ? beside.length : slash + 1);
    const file = await contents.newUntitled({ path: beside, type: "notebook" });
    const content = notebookOf(folder, await defaultKernel(app));
    await contents.save(file.path, { type: "notebook", format: "json", content });
    await run(app, file.path);
  }

  /** Open a notebook and run its cells. @param {Lnb.Json} app @param {string} path */
  async function run(app, path) {
    const panel = await app.commands.execute("docmanager:open", { path });
    if (!panel?.sessionContext) return; // it opened in a window of its own
    await panel.revealed;
    await panel.sessionContext.ready;
    await app.commands.execute("notebook:run-all-cells");
  }

  /**
   * The notebook in whose cell an element stands, and the place of the cell; null elsewhere.
   * @param {Lnb.Json} app @param {Node} element
   */
  function cellOf(app, element) {
    for (const panel of app.shell.widgets("main")) {
      if (!panel.node.contains(element) || !panel.content?.widgets || !panel.context) continue;
      const index = [...panel.content.widgets].findIndex((cell) => cell.node.contains(element));
      if (index >= 0) return { panel, index };
    }
    return null;
  }

  /** @param {Lnb.Json} app @param {Event} event */
  function openBeside(app, event) {
    const place = cellOf(app, /** @type {Node} */ (event.target));
    if (!place) return;
    event.preventDefault();
    const { panel, index } = place;
    const before = new Set(app.shell.widgets("main"));
    const { path } = panel.context;
    app.commands.execute(OUTPUT_VIEW, { path, index }).then(() => {
      const view = [...app.shell.widgets("main")].find((widget) => !before.has(widget));
      if (view) app.shell.add(view, "main", { ref: panel.id, mode: "split-right" });
    });
  }

  /**
   * Run the notebook that `lance-nb lab` opened: the server that it started names it in the
   * settings of the page, which no notebook and no address can change. Once, also when the page is
   * loaded again.
   * @param {Lnb.Json} app
   */
  async function runNamed(app) {
    const settings = document.getElementById("jupyter-config-data")?.textContent;
    const { path, id } = JSON.parse(settings || "{}").lanceNbRun ?? {};
    if (!path || sessionStorage.getItem(COMMAND) === id) return;
    sessionStorage.setItem(COMMAND, id);
    await app.restored;
    await run(app, path);
  }

  /** @param {Lnb.Json} app @param {Lnb.Json} browsers of files, null where there are none */
  function activate(app, browsers) {
    runNamed(app);
    // Notebook 7 loads this extension, too, and has no place for a second view.
    if (app.name === "JupyterLab") {
      document.documentElement.dataset.lanceNbBeside = "";
      document.addEventListener(BESIDE, (event) => openBeside(app, event));
    }
    if (!browsers) return;
    const folder = () => {
      const items = [...(browsers.tracker.currentWidget?.selectedItems() ?? [])];
      const [item] = items;
      return items.length === 1 && item.type === "directory" && item.name.endsWith(".lance")
        ? item.path
        : null;
    };
    app.commands.addCommand(COMMAND, {
      label: "Explore with lance_nb",
      isVisible: () => folder() !== null,
      execute: () => {
        const path = folder();
        return path === null ? undefined : explore(app, path);
      },
    });
    app.contextMenu.addItem({
      command: COMMAND,
      selector: '.jp-DirListing-item[data-isdir="true"]',
      rank: 1,
    });
  }

  /** @param {string} module */
  async function get(module) {
    if (module !== "./extension") throw new Error(`${NAME} has no module ${module}`);
    const files = await sharedModule(FILE_BROWSER);
    const optional = files?.IFileBrowserFactory ? [files.IFileBrowserFactory] : [];
    const plugin = { id: `${NAME}:explore`, autoStart: true, optional, activate };
    return () => ({ __esModule: true, default: [plugin] });
  }

  const page = /** @type {{_JUPYTERLAB?: Record<string, object>}} */ (globalThis);
  page._JUPYTERLAB ??= {};
  page._JUPYTERLAB[NAME] = {
    get,
    /** @param {typeof shared} scope */
    init(scope) {
      shared = scope;
    },
  };
})();
