// Documents of the queries: relevant ones with their ranks, and the first ten with their terms.

/** Where the rows of each query begin and end; rows of a query stand together. */
function rowsByQuery(queries) {
  const ranges = new Map();
  queries.forEach((query, row) => {
    const range = ranges.get(query);
    if (range) range[1] = row + 1;
    else ranges.set(query, [row, row + 1]);
  });
  return ranges;
}

function lazily(make) {
  let made = null;
  return () => (made ??= make());
}

/** The details of a collection; null where the page has none. */
export function createDetails(data) {
  if (!data) return null;
  const { relevant } = data;
  const relevantRows = lazily(() => rowsByQuery(relevant.query));
  const tops = new Map(
    data.top.map((top) => [top.system, { ...top, rows: lazily(() => rowsByQuery(top.query)) }]),
  );
  const kept = data.kept === null ? null : new Set(data.kept);
  const documentOf = (number) => ({
    id: data.documents[number],
    text: data.document_texts?.[number] ?? null,
  });

  return {
    data,
    detailed: [...tops.keys()],
    sources: relevant.sources,
    systems: relevant.systems,
    isKept: (query) => kept === null || kept.has(query),
    keptCount: kept === null ? null : kept.size,
    /** The relevant documents of a query, each with its ranks; 0 = not returned. */
    relevant(query) {
      const [start, end] = relevantRows().get(query) ?? [0, 0];
      const rows = [];
      for (let row = start; row < end; row += 1) {
        rows.push({
          ...documentOf(relevant.documents[row]),
          grade: relevant.grades[row],
          sourceRanks: relevant.source_ranks.map((ranks) => ranks[row]),
          systemRanks: relevant.system_ranks.map((ranks) => ranks[row]),
        });
      }
      return rows;
    },
    /** The first documents of a detailed system; null for any other. */
    top(system, query) {
      const top = tops.get(system);
      if (!top) return null;
      const [start, end] = top.rows().get(query) ?? [0, 0];
      const rows = [];
      for (let row = start; row < end; row += 1) {
        const [part, whole, count] = top.chunks?.[row] ?? [];
        const chunk = top.chunks && { ...documentOf(part), document: data.documents[whole], count };
        const found = documentOf(top.documents[row]);
        const terms = top.labels.map((label, i) => ({ label, index: i, value: top.terms[i][row] }));
        rows.push({
          ...found,
          text: found.text ?? chunk?.text,
          chunk,
          rank: row - start + 1,
          grade: top.grades[row],
          score: top.scores[row],
          terms: terms.filter(({ value }) => value !== null),
        });
      }
      return rows;
    },
  };
}
