/** A file of an agent's settings with the variables of the sandbox in it. Pure. */

/**
 * `{NAME}`, or `{NAME:-20}` for its last 20 characters. What is not there is empty; other braces stay. Values are put in as they
 * stand between double quotes, in JSON and in TOML alike.
 */
export function fillFile(content: string, env: Readonly<Record<string, string>>): string {
  return content.replace(/\{([A-Z][A-Z0-9_]*)(?::-(\d{1,3}))?\}/g, (_all, name: string, last?: string) => {
    const value = env[name] ?? '';
    return quotable(last === undefined ? value : value.slice(-Number(last)));
  });
}

const quotable = (text: string): string => JSON.stringify(text).slice(1, -1);

/** NUL-separated, as `env -0` prints it. */
export function readEnvironment(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text
      .split('\0')
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}
