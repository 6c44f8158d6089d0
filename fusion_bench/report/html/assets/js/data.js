// The data of the page: compressed JSON in a block of text, written by Python.

import { createDetails } from "./details.js";

/** Read the block; null where the page has none. */
export async function readData() {
  const block = document.getElementById("page-data");
  if (block === null) return null;
  const bytes = Uint8Array.from(atob(block.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** For each measure and system its values by query. */
function tablesOf(tables) {
  return tables.map(({ distinct, rows }) =>
    rows.map((row) => Float64Array.from(row, (i) => (i < 0 ? NaN : distinct[i]))),
  );
}

/** One collection with quick access to its values. */
export class Collection {
  constructor(data, index) {
    Object.assign(this, data);
    this.details = createDetails(data.details);
    this.index = index;
    this.competitors = this.systems.filter((system) => system.kind === "system");
    this.position = new Map(this.systems.map((system, i) => [system.name, i]));
    this.table = tablesOf(this.values);
    this.isChange = Boolean(this.then);
    this.tableThen = this.isChange ? tablesOf(this.then) : null;
    /** What values are compared with: as a heading, and in running text. */
    this.baseTitle = this.isChange ? "then" : this.baseline;
    this.baseWord = this.isChange ? "then" : "baseline";
  }

  /** The values by query of a system on a measure. */
  row(name, measure = 0) {
    return this.table[measure][this.position.get(name)];
  }

  /** What the values of a system are compared with: the baseline's, or its own of the old report. */
  base(name, measure = 0) {
    if (!this.isChange) return this.row(this.baseline, measure);
    return this.tableThen[measure][this.position.get(name)];
  }

  /** The differences by query from what they are compared with. */
  gains(name, measure = 0) {
    const [values, base] = [this.row(name, measure), this.base(name, measure)];
    return values.map((value, i) => value - base[i]);
  }

  /** The unjudged documents among the first ten of a system, by query; null = not known. */
  unjudged(name) {
    const counts = this.details?.data.unjudged ?? {};
    return Object.hasOwn(counts, name) ? counts[name] : null;
  }

  system(name) {
    return this.systems[this.position.get(name)];
  }

  /** The text of a query, or its id where it has none. */
  title(query) {
    return this.texts?.[query] || this.queries[query];
  }
}

/** A value that several views share; each subscriber is called after a change. */
export function createStore(initial) {
  const subscribers = [];
  const state = { ...initial };
  return {
    state,
    set(changes) {
      const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
      if (!changed.length) return;
      Object.assign(state, changes);
      for (const call of subscribers) call(state, new Set(changed));
    },
    subscribe(call) {
      subscribers.push(call);
      call(state, new Set(Object.keys(state)));
    },
  };
}
