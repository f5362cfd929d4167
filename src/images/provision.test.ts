import { describe, expect, it } from 'vitest';
import { provisionMarker, provisionVersion } from './provision.ts';
import { readRecipe } from './recipe.ts';

async function text(kind: 'base' | 'test', name: string): Promise<string> {
  const { files } = await readRecipe(kind, 'amd64');
  return files.find((file) => file.name === name)?.content.toString('utf8') ?? '';
}

describe.each(['base', 'test'] as const)('the marker of the %s image', (kind) => {
  it('[G9] gets its version from the code and from nowhere else', async () => {
    const dockerfile = await text(kind, 'Dockerfile');
    expect(dockerfile).toMatch(/^ARG PROVISION_VERSION$/m);
    expect(dockerfile).toContain('PROVISION_VERSION}"');
    const script = await text(kind, 'provision.sh');
    expect(script).not.toMatch(/provisioned\.v\d/);
    expect(provisionMarker).toBe(`/opt/sallyport/.provisioned.v${provisionVersion}`);
    expect(script).toContain('here=/opt/sallyport');
    expect(script).toContain('marker="$here/.provisioned.v$version"');
  });

  it('[G10] is written after the smoke test, as the last change', async () => {
    const script = await text(kind, 'provision.sh');
    expect(script.indexOf(': >"$marker"')).toBeGreaterThan(script.indexOf('<"$here/smoke.txt"'));
    expect(script).toMatch(/^set -eu$/m);
  });
});
