// Numbers as the other pages write them: see fusion_bench/util/formatting.py.

const MOST_DECIMALS = 12;

/** Fixed decimals without a sign; a number halfway between two goes to the even one, as Python's do. */
function fixed(value, decimals) {
  const size = Math.abs(value);
  // Only odd multiples of 2^-(decimals + 1) lie exactly halfway.
  if ((size * 2 ** (decimals + 1)) % 2 !== 1) return size.toFixed(decimals);
  const below = size * 10 ** decimals - 0.5;
  return ((below + (below % 2)) / 10 ** decimals).toFixed(decimals);
}

/** Four decimals, or as many as it takes to tell it from 0; "n/a" for no number. */
export function formatNumber(value, signed = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return "n/a";
  for (let decimals = 4; decimals <= MOST_DECIMALS; decimals += 1) {
    const text = fixed(value, decimals);
    if (Number(text) !== 0) return `${value < 0 ? "-" : signed ? "+" : ""}${text}`;
  }
  return "0.0000";
}

/** A signed number; 0 without a sign. */
export function formatSigned(value) {
  return formatNumber(value, true);
}

/** "[low, high]". */
export function formatInterval(low, high, signed = false) {
  if (low === null || high === null) return "n/a";
  return `[${formatNumber(low, signed)}, ${formatNumber(high, signed)}]`;
}

/** Thousands set apart. */
export function formatCount(count) {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 query", "1,234 queries". */
export function pluralize(count, noun) {
  const plural = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** A share in percent. */
export function formatPercent(share) {
  if (share === null || share === undefined) return "n/a";
  return share > 0 && share < 0.0005 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}

/** A score or a term: four significant digits, as explain writes them. */
export function formatTerm(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(3);
}
