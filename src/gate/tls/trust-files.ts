/**
 * How a sandbox comes to trust its CA: one bundle of the image's roots and our certificate, the certificate alone, and the
 * variables by which common clients find them. The roots of the image stay trusted, because tunnels that are not opened show
 * the server's own certificate.
 */

import { browserHome } from '../../protocol/box.ts';
import { javaTruststore } from './java-truststore.ts';
import { nssDatabase } from './nss-database.ts';
import type { SandboxAuthority } from './sandbox-authority.ts';

export interface TrustFile {
  readonly path: string;
  readonly content: string | Buffer;
}

export interface Trust {
  readonly files: readonly TrustFile[];
  readonly env: Readonly<Record<string, string>>;
}

/** Where images and machines have their roots: Debian and Alpine, Fedora, openSUSE, macOS and the BSDs. The first one counts. */
export const bundlePaths = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
] as const;

/**
 * `imageRoots` is the image's own bundle as PEM, or undefined where it has none; `folder` is one of ours that programs
 * inside can read.
 */
export function trustFiles(
  imageRoots: string | undefined,
  ca: Pick<SandboxAuthority, 'certificatePem'>,
  folder: string,
  now = new Date(),
): Trust {
  const own = `${folder}/gate-ca.pem`;
  const bundle = `${folder}/ca-bundle.pem`;
  const java = `${folder}/truststore.jks`;
  const apt = `${folder}/apt.conf`;
  const wget = `${folder}/wgetrc`;
  const all = `${imageRoots === undefined ? '' : `${imageRoots.trimEnd()}\n`}${ca.certificatePem}`;
  return {
    files: [
      { path: own, content: ca.certificatePem },
      { path: bundle, content: all },
      { path: java, content: javaTruststore(all, now) },
      { path: apt, content: `Acquire::https::CAInfo "${bundle}";\n` },
      { path: wget, content: `ca_certificate = ${bundle}\n` },
      // Chromium reads no variable for it, and what it reads is for whoever has this HOME: the browser that we start.
      { path: `${folder}/${browserHome}/.pki/nssdb/cert9.db`, content: nssDatabase(ca.certificatePem) },
    ],
    env: {
      // Node adds this one to its own roots.
      NODE_EXTRA_CA_CERTS: own,
      DENO_CERT: own,
      // These replace the roots of their client.
      SSL_CERT_FILE: bundle,
      REQUESTS_CA_BUNDLE: bundle,
      CURL_CA_BUNDLE: bundle,
      GIT_SSL_CAINFO: bundle,
      PIP_CERT: bundle,
      CARGO_HTTP_CAINFO: bundle,
      AWS_CA_BUNDLE: bundle,
      // uv has roots of its own unless it is told to use those of the system, which SSL_CERT_FILE names.
      UV_NATIVE_TLS: 'true',
      // These have a file for it and no variable. Debian's wget knows the system's roots only.
      APT_CONFIG: apt,
      WGETRC: wget,
      JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${java}`,
    },
  };
}
