/** Two styles, without a dependency: this runs before anything is installed. */

const on = process.stderr.isTTY && !process.env.NO_COLOR;
const style = (open, close) => (text) => (on ? `\x1b[${open}m${text}\x1b[${close}m` : text);

const colour = { bold: style(1, 22), dim: style(2, 22), green: style(32, 39), red: style(31, 39) };

export { colour };
