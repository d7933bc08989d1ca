// What opens from the grid: the menu of a cell, the list of columns, the form of an export, a
// whole row. They are loaded with the first that is opened.

import { cellMenu } from "./cell_menu.js";
import { ColumnList } from "./column_list.js";
import { exportPane } from "./export_pane.js";
import { rowDetail } from "./row_detail.js";

const panes = { cellMenu, ColumnList, exportPane, rowDetail };
/** @typedef {typeof panes} GridPanes */

export default { mount: () => panes };
