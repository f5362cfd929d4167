/**
 * The certificate authority of one sandbox. Its key is made on the host and stays there: only the certificate is ever given to
 * the sandbox, and no other sandbox trusts it.
 */

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import tls from 'node:tls';
import { type KeyPair, makeAuthorityCertificate, makeLeafCertificate } from './certificate.ts';

/** As it is kept in the state folder. */
export interface StoredAuthority {
  readonly name: string;
  readonly key: string;
  readonly certificate: string;
}

const dayMs = 86_400_000;
const authorityDays = 3650;
const leafDays = 90;
const mostLeaves = 256;

export class SandboxAuthority {
  readonly #name: string;
  readonly #key: KeyPair;
  readonly #certificate: string;
  /** All leaves have one key: whoever could take it could take the others, too. */
  readonly #leafKey: KeyPair;
  readonly #leafKeyPem: string;
  readonly #leaves = new Map<string, { readonly context: tls.SecureContext; readonly renewAtMs: number }>();

  private constructor(name: string, key: KeyPair, certificate: string) {
    this.#name = name;
    this.#key = key;
    this.#certificate = certificate;
    this.#leafKey = newKey();
    this.#leafKeyPem = pemOf(this.#leafKey.privateKey);
  }

  static create(sandbox: string, now: Date): SandboxAuthority {
    const name = `Sallyport gate of ${sandbox}`.slice(0, 64);
    const key = newKey();
    const validity = { from: new Date(now.getTime() - dayMs), until: daysAfter(now, authorityDays) };
    return new SandboxAuthority(name, key, makeAuthorityCertificate(name, key, validity));
  }

  static restore({ name, key, certificate }: StoredAuthority): SandboxAuthority {
    const privateKey = createPrivateKey(key);
    return new SandboxAuthority(name, { privateKey, publicKey: createPublicKey(privateKey) }, certificate);
  }

  /** For the sandbox. */
  get certificatePem(): string {
    return this.#certificate;
  }

  /** SECURITY: for the state folder alone. */
  stored(): StoredAuthority {
    return { name: this.#name, key: pemOf(this.#key.privateKey), certificate: this.#certificate };
  }

  /** What a TLS server needs to be `host` for this sandbox. */
  contextFor(host: string, now = new Date()): tls.SecureContext {
    const known = this.#leaves.get(host);
    if (known !== undefined && known.renewAtMs > now.getTime()) return known.context;
    const context = tls.createSecureContext({ ...this.leafFiles(host, now), minVersion: 'TLSv1.2' });
    this.#leaves.delete(host);
    this.#leaves.set(host, { context, renewAtMs: now.getTime() + (leafDays / 2) * dayMs });
    const [oldest] = this.#leaves.keys();
    if (this.#leaves.size > mostLeaves && oldest !== undefined) this.#leaves.delete(oldest);
    return context;
  }

  /** A new leaf and its key, as PEM. */
  leafFiles(host: string, now = new Date()): { readonly key: string; readonly cert: string } {
    // A clock inside may be behind by a little.
    const validity = { from: new Date(now.getTime() - dayMs), until: daysAfter(now, leafDays) };
    const authority = { name: this.#name, key: this.#key };
    const cert = makeLeafCertificate(host, this.#leafKey.publicKey, authority, validity);
    return { key: this.#leafKeyPem, cert };
  }
}

const newKey = (): KeyPair => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const daysAfter = (date: Date, days: number): Date => new Date(date.getTime() + days * dayMs);
