// What opens from the grid: the menu of a cell, the list of columns, the form of an export. They
// are loaded with the first that is opened.

import { cellMenu } from "./cell_menu.js";
import { ColumnList } from "./column_list.js";
import { exportPane } from "./export_pane.js";

const panes = { cellMenu, ColumnList, exportPane };
/** @typedef {typeof panes} GridPanes */

export default { mount: () => panes };
