/** Which image a sandbox gets whose spec names an agent. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { agentTemplates } from '../../src/images/agent-templates.ts';
import { EngineBoxImages } from '../../src/images/box-images.ts';
import { readTemplate, templatePlace } from '../../src/images/template.ts';
import { silent } from '../../src/lib/progress.ts';
import type { ImageChoice } from '../../src/sandboxes/ports.ts';
import { testEngine } from '../support/engine.ts';
import { newBase, newProject, projectImages, resolveApproved } from '../support/projects.ts';

const { connection, image } = testEngine();
const engine = dockerImageEngine(connection);
const images = new EngineBoxImages(engine, { templates: agentTemplates(engine) });
const provide = (agent: string) => images.provide({ agent }, { progress: silent });

describe('[O1] the image of an agent', () => {
  it('is that of its template, and how to make it is told where it is missing', async () => {
    const { repository, tag } = await readTemplate(templatePlace('opencode'), await engine.architecture());
    const reference = `${repository}:${tag}`;
    if ((await engine.find(reference)) === undefined) {
      await expect(provide('opencode')).rejects.toMatchObject({
        code: 'image_missing',
        advice: expect.stringContaining('sally provision opencode'),
      });
      await engine.tag(image, repository, tag);
      onTestFinished(() => engine.remove(reference));
    }
    expect(await provide('opencode')).toMatchObject({ reference, id: (await engine.find(reference))?.id });
  });

  it('is none for one that is not known, and those that are known are named', async () => {
    await expect(provide('nobody')).rejects.toMatchObject({
      code: 'image_missing',
      advice: 'Name an image, or one of claude, codex, coding, opencode.',
    });
  });
});

describe('[O1] the image of a sandbox', () => {
  it('is the one that is named, else of the workspace’s Dockerfile, else of the agent, else the default, else the base image', async () => {
    const named = await newBase('LABEL is=named');
    const agents = await newBase('LABEL is=agent');
    const idOf = async (reference: string) => (await engine.find(reference))?.id ?? '';
    const ofAgent = { reference: agents.reference, id: await idOf(agents.reference), env: {} };
    const projects = await projectImages();
    const all = new EngineBoxImages(engine, {
      projects,
      templates: new Map([['mine', async () => ofAgent]]),
    });
    const workspace = await newProject({ 'Dockerfile.sallyport': `FROM ${image}\nLABEL is=workspace\n` });
    const empty = await newProject({ 'README.md': 'no Dockerfile' });
    const own = await resolveApproved(projects, workspace);
    const approvedDockerfile = (await projects.look({ folder: workspace }))?.approval ?? '';
    const provided = async (choice: ImageChoice) => await all.provide(choice, { progress: silent });

    const other = await newBase('LABEL is=default');
    const fallback = other.reference;
    const everything = { workspace, approvedDockerfile, agent: 'mine', fallback };
    expect(await provided({ ...everything, image: named.reference })).toMatchObject({
      id: await idOf(named.reference),
    });
    expect(await provided(everything)).toMatchObject({ reference: own.reference, id: own.id });
    expect(await provided({ workspace: empty, agent: 'mine', fallback })).toEqual(ofAgent);
    expect(await provided({ workspace: empty, fallback })).toMatchObject({ id: await idOf(fallback) });
    // It is on this engine or it is told how to make it; in both cases it is the one that is meant.
    const last = await provided({ workspace: empty }).then(
      ({ reference }) => reference,
      (error: Error) => error.message,
    );
    expect(last).toMatch(/\bsallyport-base:/);
  });
});
