/** What programs inside read to find the gate. A spec's own `envs` win over it. */

const proxy = 'http://127.0.0.1:3128';
const notByProxy = 'localhost,127.0.0.1,::1';

export function clientEnvironment(): Readonly<Record<string, string>> {
  const names = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: notByProxy };
  // Some read one spelling only, and curl reads http_proxy in small letters alone.
  const small = Object.entries(names).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    ...names,
    ...Object.fromEntries(small),
    // Node's own fetch reads the variables above only when it is told to; npm and yarn have names of their own.
    NODE_USE_ENV_PROXY: '1',
    npm_config_proxy: proxy,
    npm_config_https_proxy: proxy,
    npm_config_noproxy: notByProxy,
    YARN_HTTP_PROXY: proxy,
    YARN_HTTPS_PROXY: proxy,
    PIP_PROXY: proxy,
    CARGO_HTTP_PROXY: proxy,
    ELECTRON_GET_USE_PROXY: '1',
  };
}
