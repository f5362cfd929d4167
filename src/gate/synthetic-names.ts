/**
 * Which address inside stands for which name: 127.66.0.1 for the first that was asked for, and so on. An address is never
 * given to another name as long as the sandbox exists, so the list is kept with the sandbox.
 */

export interface NameList {
  readonly load: () => readonly string[];
  /** Safe when it returns: after that the address is told to programs inside. */
  readonly save: (names: readonly string[]) => void;
}

const mostNames = 4096;
/** A wildcard fits any number of names, and code inside makes them up. */
const mostPerWildcard = 256;

export class SyntheticNames {
  readonly #list: NameList;
  readonly #names: string[];
  readonly #numbers: Map<string, number>;
  readonly #byWildcard = new Map<string, number>();

  constructor(list: NameList) {
    this.#list = list;
    this.#names = [...list.load()];
    this.#numbers = new Map(this.#names.map((name, index) => [name, index]));
  }

  nameAt(address: string): string | undefined {
    const [, high, low] = /^127\.66\.(\d{1,3})\.(\d{1,3})$/.exec(address) ?? [];
    return this.#names[Number(high) * 256 + Number(low) - 1];
  }

  has(name: string): boolean {
    return this.#numbers.has(name);
  }

  /** Undefined: there are too many already. `wildcard` is the rule, where it names no single host. */
  addressOf(name: string, wildcard: string | undefined): string | undefined {
    const known = this.#numbers.get(name);
    if (known !== undefined) return addressAt(known);
    const used = wildcard === undefined ? 0 : (this.#byWildcard.get(wildcard) ?? 0);
    if (this.#names.length >= mostNames || used >= mostPerWildcard) return undefined;
    this.#list.save([...this.#names, name]);
    this.#numbers.set(name, this.#names.length);
    this.#names.push(name);
    if (wildcard !== undefined) this.#byWildcard.set(wildcard, used + 1);
    return addressAt(this.#names.length - 1);
  }
}

function addressAt(index: number): string {
  const number = index + 1;
  return `127.66.${number >> 8}.${number & 255}`;
}
