// Types that several modules share: what the kernel sends (see the models of lance_nb/explorer) and
// what views get. They are for tests/js and editors only; nothing of this reaches a browser.

declare namespace Lnb {
  /** JSON of the kernel: its shape is that of the request or trait, see the handlers in Python. */
  // biome-ignore lint/suspicious/noExplicitAny: the one place where values come from outside
  type Json = any;
  type Child = Node | string | number | null | undefined | false | Child[];
  /** The name of an element, with classes behind it: "span.lnb-faint". */
  type ElementTag<Names extends string> = Names | `${Names}.${string}`;
  type NameOf<T extends string, Names extends string> = Names &
    (T extends `${infer Name}.${string}` ? Name : T);
  /** An event whose target is an element of ours. */
  type Heard<E extends Event> = E & { target: HTMLElement; currentTarget: HTMLElement };
  type Handlers = {
    [K in keyof HTMLElementEventMap]?: (event: Heard<HTMLElementEventMap[K]>) => unknown;
  };
  interface Props {
    [attribute: string]: string | number | boolean | null | undefined | Handlers;
    on?: Handlers;
  }

  /** anywidget's model. What the traits hold is JSON of the kernel. */
  interface Model {
    get(name: string): Json;
    on(name: string, listener: (...values: Json[]) => void): void;
    off(name: string, listener: (...values: Json[]) => void): void;
    send(content: Message, callbacks?: object): unknown;
  }
  interface Message {
    id: string;
    type: string;
    args: Args;
  }
  /** The JSON arguments of a request. */
  type Args = Record<string, Json>;
  interface Widget {
    render(of: { model: Model; el: HTMLElement }): unknown;
    mount?: Mount;
  }
  type Mount = (element: HTMLElement, context: Context) => unknown;

  type Buffer = DataView | ArrayBuffer;
  interface Answer {
    result: Json;
    buffers: Buffer[];
  }
  interface Asked extends Promise<Answer> {
    cancel(): void;
  }
  interface Options {
    progress?: ((done: number, total: number) => void) | null;
    quiet?: boolean;
  }
  type Done = (answer: Answer) => void;
  type Failed = (error: Failure) => void;
  interface Queue {
    (type: string, args: Args, done: Done, failed: Failed): unknown;
    cancel(): void;
  }
  type State = "connecting" | "live" | "static";
  type Kernel = import("./kernel.js").Kernel;
  interface Cost {
    requests: number;
    bytes: number;
    ms: number;
  }
  interface Card {
    title: string;
    message: string;
    where: string;
    hint: string;
    kind: string;
    retry?: () => void;
  }
  /** What a request is rejected with: `card` is the kernel's, or that of a timeout. */
  interface Failure extends Error {
    card?: Card;
  }

  interface Place {
    branch: string | null;
    version: number;
  }
  interface Range {
    a: Place | null;
    b: Place;
  }
  interface VersionRange {
    get(): Range;
    readonly pinned: boolean;
    set(range: { a?: Place | null; b?: Place | null }, how?: { dragging?: boolean }): void;
    /** End a drag as if it had not been. */
    giveUp(): void;
    reach(end: "a" | "b"): void;
    onReach(listener: (end: "a" | "b") => void): () => void;
    on(listener: (range: Range, how: { dragging: boolean }) => void): () => void;
    compared(a: Place, b: Place): RowCounts | null;
    compare(a: Place, b: Place, counts: RowCounts): void;
    onCompared(listener: () => void): () => void;
  }
  /** How many rows differ between two versions; `bound`: at most, `note`: without numbers. */
  interface RowCounts {
    added: number;
    removed: number;
    changed: number;
    bound: boolean;
    note: string;
  }

  interface CodeLines {
    python: string;
    magic?: string;
    sql?: string;
    [language: string]: string | undefined;
  }
  interface Detail {
    show(of: { title: string; content: Child; focus?: boolean }): void;
    clear(): void;
  }
  interface Context {
    kernel: Kernel;
    shared: { window: object | null; retention?: RetentionMarks };
    root: HTMLElement;
    height: number;
    screen(): Screen;
    /** The version that is shown. */
    place(): Place;
    onScreen(paint: (screen: Screen, patched: boolean) => void, parts?: string[] | null): void;
    refresh(parts: Partial<Screen>): void;
    travel(to: { ref: string } | Place): void;
    range: VersionRange;
    rows: ShownRows;
    go(tab: string, target?: object): boolean;
    has(tab: string): boolean;
    code(lines: CodeLines | null): void;
    detail: Detail;
    /** The card of what was thrown. */
    problem(error: unknown, retry?: () => void): HTMLElement;
    announce(text: string): void;
    /** Say what is on the screen: for the picture that a saved notebook keeps. */
    describe(name: string, state: () => Json): void;
    onClose(work: () => void): void;
    writes?: boolean;
  }
  /** How the versions that a clean-up would remove are marked on the timeline. */
  interface RetentionMarks {
    goes(branch: string | null, version: number): boolean;
    words(branch: string | null, version: number): string;
    hovered(branch: string | null, version: number): void;
    /** Paint the bars anew. */
    repaint(): void;
  }
  interface View {
    open?(target: Json): unknown;
    shown?(): void;
    hidden?(): void;
  }

  interface Screen {
    error: Card | null;
    branch: string | null;
    version: number;
    label: string;
    code: CodeLines;
    locked: boolean | null;
    kept?: boolean;
    /** The tabs that this version has and others may not have, by their id. */
    offers?: string[];
    card?: DatasetCard;
    timeline?: Timeline;
    rows?: FirstRows;
    detail?: VersionDetail;
    news?: News | null;
    io?: Cost | null;
    compare?: { a: Place | null; key: string[] | null };
    value?: Json;
    /** The tables of a database, see tables/widget.py. */
    tables?: Json;
    schema?: Json;
    fragment?: number | null;
  }
  interface Fact {
    key: string;
    value: string;
    title: string;
  }
  interface DatasetCard {
    error?: Card;
    name: string;
    uri: string;
    branch: string | null;
    version: number;
    label: string;
    latest: number;
    tags: string[];
    facts: Fact[];
  }
  interface News {
    added: number;
    latest: number;
    gone: boolean;
    lost?: string;
    way?: { branch: string | null; version: number; label: string } | null;
  }
  interface VersionBar {
    version: number;
    time: string;
    time_ms: number | null;
    operation: string;
    message: string;
    rows: number | null;
    added: number | null;
    removed: number | null;
    /** The version that it was made from was cleaned up: what it changed is not known. */
    orphaned?: boolean;
    /** Where a merge, cherry-pick or revert took its changes from. */
    merge?: {
      kind: string;
      branch: string | null;
      version: number;
      there: boolean;
      words: string;
    };
  }
  type Run = [first: number, length: number];
  interface TimelineLane {
    branch: string | null;
    label: string;
    runs: Run[];
    older: number;
    fork: [string | null, number] | null;
    details: VersionBar[];
  }
  interface Tag {
    name: string;
    branch: string | null;
    version: number;
    /** The version for which a merge made it. */
    pin?: string;
  }
  interface Timeline {
    error?: Card;
    branch: string | null;
    version: number;
    lanes: TimelineLane[];
    hidden_branches: number;
    tags: Tag[];
    hidden_tags: number;
  }
  interface FirstRows {
    error?: Card;
    num_rows: number;
    num_columns: number;
    page: RowPage;
    buffers: Buffer[];
    num_buffers?: number;
    whole?: { rows: number; columns: number };
  }
  interface Entry {
    label: string;
    value: string;
  }
  interface VersionDetail {
    error?: Card;
    label: string;
    branch: string | null;
    version: number;
    time: string;
    time_ms: number | null;
    operation: string;
    description: string;
    message: string;
    tags: string[];
    counts: Entry[];
    properties: Entry[];
    transaction: Entry[];
    schema: SchemaTree;
  }
  interface SchemaLine {
    depth: number;
    name: string;
    type: string;
    nullable: boolean;
    note: string;
  }
  interface SchemaTree {
    lines: SchemaLine[];
    hidden: number;
    columns: number;
  }

  /** A lane of the timeline with its place in pixels. */
  interface Lane {
    index: number;
    branch: string | null;
    label: string;
    fork: [string | null, number] | null;
    runs: Run[];
    older: number;
    numbers: number[];
    details: Map<number, VersionBar>;
    asked: Set<number>;
    tags: { version: number; names: string[]; pins: boolean }[];
    top: number;
    /** Above its bars there are its flags. */
    head: number;
    height: number;
    flags: Flag[];
  }
  /** Where the flag of a tag stands; `flip`: on the left of its staff. */
  interface Flag {
    level: number;
    flip: boolean;
    room: number;
    x: number;
  }
  interface Spot {
    lane: number;
    version: number;
  }
  interface LaneMap {
    lanes: Lane[];
    numbers: number[];
    slot: number;
    width: number;
    height: number;
    mostRows: number;
    hidden: number;
    /** Branches without a version of their own. */
    empty: number;
    older: number;
    here: Spot;
    /** Divide `room` pixels; `chosen` are the pixels of one version, else they are automatic. */
    fit(room: number, chosen?: number): void;
    measure(): void;
    indexOf(number: number): number;
    x(number: number): number;
    visible(left: number, room: number, overscan: number): [number, number];
    numbersBetween(lane: Lane, first: number, last: number): number[];
    nearest(lane: Lane, x: number): number | null;
    gaps(lane: Lane, most: number): [left: number, width: number, words: string][];
    changed(lane: Lane, from: number, to: number): Sums;
    step(key: string, from: Spot): Spot | null;
  }
  interface Sums {
    versions: number;
    added: number;
    removed: number;
    unknown: number;
    /** Versions that were cleaned up, or cannot be compared because their parent was. */
    gone?: number;
  }

  /** A page of rows as it comes: the buffers are beside it. */
  interface RowPage {
    offset: number;
    num_rows: number;
    first_column: number;
    columns: PageColumn[];
  }
  interface PageColumn {
    name: string;
    type: string;
    encoding: string;
    buffers: number[];
    validity: number | null;
    raw?: string | null;
    look?: string;
    points?: number;
    pictures?: string;
    /** By row where words of a search stand: starts and stops. */
    marks?: Record<string, number[]>;
  }
  interface Cell {
    text: string;
    /** What the grid shows of a number with more digits; `text` has all of them. */
    short?: string;
    look: string;
    spark?: Uint8Array;
    picture?: boolean;
    marks?: number[];
    old?: Cell | null;
    name?: string;
  }
  interface Column {
    name: string;
    /** pixels that its pictures need, where a cell has two */
    room?: number;
    raw: string;
    type: string;
    look: string;
    pictures: boolean;
    cell(row: number): Cell;
  }
  interface Page {
    offset: number;
    numRows: number;
    firstColumn: number;
    columns: Column[];
    isAll?: boolean;
    holds(row: number, column: number): boolean;
    cell(row: number, column: number): Cell;
  }
  interface PageStore {
    reset(place: Args | null, page?: Page | null, how?: { alike?: boolean }): void;
    readonly failure: Card | null;
    readonly count: number;
    readonly waits: boolean;
    pageOf(row: number): Page | undefined;
    cell(row: number, column: number): Cell | undefined;
    column(at: number): Column | undefined;
    want(
      rows: [number, number],
      columns: [number, number],
      down: boolean,
      numRows: number,
      pinned?: number,
    ): void;
  }
  interface ColumnWidths {
    of(index: number): number;
    left(index: number): number;
    total(count: number): number;
    set(index: number, px: number): void;
    learn(page: Page): void;
    fit(index: number, column: Column | undefined, cells: (Cell | undefined)[]): void;
    visible(scrolled: number, room: number, columns: number): [number, number];
  }
  /** An element that is used again for other values; `lnb` is what it shows now. */
  type Recycled = HTMLElement & { lnb?: Json };
  /** What values of a column look like, see rows/column_profile.py. */
  interface Profile {
    column: number;
    kind: string;
    sampled: number;
    nulls: number;
    distinct: number;
    low: string;
    high: string;
    bars: number[];
    labels: string[];
    counts: number[];
    edges: [number, number] | null;
    wheres: string[];
    exact: boolean;
    /** Which rows were read: random, first or all. */
    sample: string;
    /** Whether the number of distinct values is estimated. */
    estimated: boolean;
    odd: OddValues[];
    statistics: [string, string][];
    /** Whether low, high and nulls are of all rows, from an index. */
    indexed_range: boolean;
  }
  /** Values without a place in a histogram: null, nan, inf, -inf, below or above it. */
  interface OddValues {
    kind: string;
    label: string;
    count: number;
    height: number;
  }
  /** Which rows a grid shows, and in which order. */
  interface Look {
    filter: string | null;
    system: boolean;
    /** By the first column first. */
    order: SortKey[] | null;
    near: Near | null;
    within: Within | null;
    search: Search | null;
    choice: ColumnChoice | null;
  }
  /** Words to search for, see rows/full_text_search.py. */
  interface Search {
    text: string;
    columns: string[] | null;
    any: boolean;
  }
  interface SortKey {
    column: string;
    ascending: boolean;
  }
  /** Columns by name: those on the left, the only ones shown or null for all, those hidden. */
  interface ColumnChoice {
    /** null: the key */
    pinned: string[] | null;
    shown: string[] | null;
    hidden: string[];
    order: "usual" | "stored" | string[];
  }
  /** Rows that a view chose, kept by the kernel under a key; `label` says which ones they are. */
  interface Within {
    rows: string;
    label: string;
  }
  /** The same for requests: the kernel keeps an order and a choice of columns under a key. */
  interface Lens {
    filter: string | null;
    system: boolean;
    arranged: string | null;
    shown: string | null;
  }
  /** Other rows are shown: `part` is the first page of a version, `result` that of `rows.look`. */
  interface RowsShown {
    place: Place;
    part: FirstRows | null;
    result: Json;
    before: Look | null;
  }
  interface RowsListener {
    /** Rows are looked for. */
    busy?(done: number, total: number): void;
    shown?(what: RowsShown): void;
    failed?(error: Failure): void;
    selected?(): void;
    /** Where the row of the keyboard is now, null where it is not; `words`: what is missing. */
    held?(found: { row: number | null; words: string }): void;
  }
  type ShownRows = import("./shown_rows.js").ShownRows;
  /** Neighbours of a vector. */
  interface Near {
    like: number;
    k: number;
    metric: string;
    row: string;
    column: string;
    at: number;
    /** Compare every vector, although there may be an index. */
    exact?: boolean;
  }
  /** The two versions that are compared, and the columns that tell rows apart. */
  interface Pair {
    a: Place;
    b: Place;
    key: string[] | null;
  }
}
