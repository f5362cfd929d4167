import { describe, expect, it } from 'vitest';
import { networkTraits } from './network-traits.ts';

const inhibit = 'com.docker.network.bridge.inhibit_ipv4';
const gatewayMode = 'com.docker.network.bridge.gateway_mode_ipv4';

describe('a network without the host on it', () => {
  it.each([
    ['20.10.24+dfsg1', inhibit, true],
    ['23.0.1', inhibit, true],
    ['26.1.4', inhibit, true],
    ['27.5.1', inhibit, false],
    ['28.0.0', gatewayMode, false],
    ['28.2.2', gatewayMode, false],
    ['29.1.0-rc.1', gatewayMode, false],
    ['unknown', inhibit, true],
  ])(
    '[A1] of engine %s is asked for with %s, and settings of its interface: %s',
    (version, option, quick) => {
      const { driverOptions, sysctls } = networkTraits(version);
      expect(driverOptions).toEqual({
        'com.docker.network.bridge.enable_ip_masquerade': 'false',
        [option]: option === inhibit ? 'true' : 'isolated',
      });
      expect(Object.keys(sysctls).some((name) => name.includes('eth0'))).toBe(quick);
    },
  );
});
