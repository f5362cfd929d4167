/** Counters, gauges and histograms in the text format of Prometheus. Labels have few values: nothing that a client may choose. */

export type Labels = Readonly<Record<string, string>>;

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly lines: () => readonly string[];
}

export class Counter {
  readonly #values = new Map<string, number>();

  add(labels: Labels = {}, amount = 1): void {
    const key = writeLabels(labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  lines(name: string): readonly string[] {
    return [...this.#values].map(([labels, value]) => `${name}${labels} ${value}`);
  }
}

export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  /** `bounds` rise. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count++;
    for (const [index, bound] of this.#bounds.entries()) {
      if (value <= bound) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    }
  }

  lines(name: string): readonly string[] {
    return [
      ...this.#bounds.map((bound, index) => `${name}_bucket{le="${bound}"} ${this.#counts[index] ?? 0}`),
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`,
    ];
  }
}

export class Metrics {
  readonly #families: Family[] = [];

  counter(name: string, help: string): Counter {
    const counter = new Counter();
    this.#families.push({ name, help, type: 'counter', lines: () => counter.lines(name) });
    return counter;
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(bounds);
    this.#families.push({ name, help, type: 'histogram', lines: () => histogram.lines(name) });
    return histogram;
  }

  /** Read when it is asked for. */
  gauge(
    name: string,
    help: string,
    read: () => Iterable<readonly [Labels, number]>,
    type: 'gauge' | 'counter' = 'gauge',
  ): void {
    const lines = (): readonly string[] =>
      Array.from(read(), ([labels, value]) => `${name}${writeLabels(labels)} ${value}`);
    this.#families.push({ name, help, type, lines });
  }

  text(): string {
    return this.#families
      .map(({ name, help, type, lines }) =>
        [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines()].join('\n'),
      )
      .join('\n')
      .concat('\n');
  }
}

function writeLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escapeValue(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const escapeValue = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
