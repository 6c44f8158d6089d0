// Which queries are shown, and in which order: shared by the heat map and the list.

/** The indices of the queries of a slice that match the filter, in the chosen order. */
export function queryOrder(collection, state) {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const [field, value] = state.slice;
  const indices = [];
  for (let i = 0; i < collection.queries.length; i += 1) {
    if (value !== undefined && collection.slices[field][i] !== value) continue;
    if (words.length) {
      const text = `${collection.queries[i]} ${collection.texts?.[i] ?? ""}`.toLowerCase();
      if (!words.every((word) => text.includes(word))) continue;
    }
    indices.push(i);
  }
  const keys = sortKeys(collection, state);
  const groups = field !== undefined && value === undefined ? collection.slices[field] : null;
  indices.sort((a, b) => {
    if (groups !== null && groups[a] !== groups[b]) {
      if (groups[a] === null || groups[b] === null) return (groups[a] === null) - (groups[b] === null);
      return groups[a] < groups[b] ? -1 : 1;
    }
    const [first, second] = [keys[a], keys[b]];
    const missing = Number.isNaN(first) - Number.isNaN(second);
    if (missing || Number.isNaN(first)) return missing || a - b;
    if (first === second) return a - b;
    return (first < second ? -1 : 1) * state.direction;
  });
  return indices;
}

/** The order in words. */
export function describeOrder({ baseTitle }, { sort, system }) {
  const orders = {
    gain: `in the order of the gain of ${system}`,
    value: `in the order of ${system}`,
    baseline: `in the order of ${baseTitle}`,
    unjudged: `in the order of the unjudged documents of ${system}`,
  };
  return orders[sort] ?? "in the order of the collection";
}

function sortKeys(collection, state) {
  if (state.sort === "gain") return collection.gains(state.system, state.measure);
  if (state.sort === "value") return collection.row(state.system, state.measure);
  if (state.sort === "baseline") return collection.base(state.system, state.measure);
  if (state.sort === "unjudged") {
    return Float64Array.from(collection.unjudged(state.system) ?? collection.queries.map(() => NaN));
  }
  return Float64Array.from(collection.queries.keys());
}

/** Runs of neighbors of the same slice in an order: [first, end, value]. */
export function sliceRuns(collection, state, order) {
  const [field, value] = state.slice;
  if (field === undefined || value !== undefined) return [];
  const runs = [];
  order.forEach((query, i) => {
    const current = collection.slices[field][query];
    const last = runs.at(-1);
    if (last && last[2] === current) last[1] = i + 1;
    else runs.push([i, i + 1, current]);
  });
  return runs;
}
