// Paints the cells of the heat map: one pixel a row and a column, then enlarged.

/**
 * Paint rows of values onto a canvas.
 *
 * rows: for each system its values by query; order: the queries from left to right; first: the
 * first column that is seen, may be a fraction; size: the width of a column in pixels, below 1
 * where several queries share a pixel: their mean is shown.
 */
export function paintCells(canvas, { rows, order, first, size, width, rowHeight, colorOf }) {
  const image = new ImageData(width, rows.length);
  rows.forEach((values, row) => {
    for (let x = 0; x < width; x += 1) {
      const from = Math.floor(first + x / size);
      if (from >= order.length) break;
      const to = Math.min(order.length, Math.max(from + 1, Math.floor(first + (x + 1) / size)));
      const [red, green, blue] = colorOf(meanOf(values, order, from, to));
      image.data.set([red, green, blue, 255], 4 * (row * width + x));
    }
  });
  const buffer = new OffscreenCanvas(width, rows.length);
  buffer.getContext("2d").putImageData(image, 0, 0);
  canvas.width = width;
  canvas.height = rows.length * rowHeight;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(buffer, 0, 0, width, rows.length, 0, 0, width, canvas.height);
}

function meanOf(values, order, from, to) {
  let [sum, count] = [0, 0];
  for (let i = from; i < to; i += 1) {
    const value = values[order[i]];
    if (!Number.isNaN(value)) {
      sum += value;
      count += 1;
    }
  }
  return count ? sum / count : NaN;
}
