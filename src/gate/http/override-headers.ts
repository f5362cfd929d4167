/**
 * Header fields by which some servers take another path, host or method than the request line has. Where a rule goes by
 * these, a field that replaces them is refused, and one that proxies add is dropped: no client inside is behind a proxy.
 */

import { Headers } from './headers.ts';
import { HttpViolation } from './violation.ts';

const replacing: ReadonlySet<string> = new Set([
  'x-original-url',
  'x-original-uri',
  'x-original-path',
  'x-original-method',
  'x-rewrite-url',
  'x-rewrite-uri',
  'x-override-url',
  'x-envoy-original-path',
  'x-envoy-original-method',
  'x-replaced-path',
  'x-waws-unencoded-url',
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-http-path-override',
  'x-http-host-override',
]);

const ofProxies: ReadonlySet<string> = new Set([
  'forwarded',
  'x-forwarded-host',
  'x-forwarded-method',
  'x-forwarded-path',
  'x-forwarded-prefix',
  'x-forwarded-server',
  'x-forwarded-uri',
  'x-forwarded-url',
  'x-host',
  'x-script-name',
  'script-name',
  'path-info',
  'x-path-info',
]);

/** Servers that put fields into variables take `X_Original_URL` for the same name. */
const plainName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');

export function withoutOverrides(headers: Headers): Headers {
  if (headers.fields.some(([name]) => replacing.has(plainName(name)))) {
    throw new HttpViolation(
      'override_refused',
      'a header field replaces the method or the path, and a rule goes by these',
    );
  }
  return new Headers(headers.fields.filter(([name]) => !ofProxies.has(plainName(name))));
}
