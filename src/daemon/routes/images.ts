/** Images: which there are, what a folder's Dockerfile asks for, builds, and why one is due. */

import { z } from 'zod';
import {
  buildBody,
  dockerfileView,
  imageView,
  projectBody,
  prunedImageView,
  pruneImagesBody,
  whyView,
} from '../../protocol/images.ts';
import { requiredText } from '../query.ts';
import { json, route } from '../route.ts';

export const imageRoutes = [
  route({
    method: 'GET',
    path: '/v1/images',
    summary: 'All images of Sallyport on the engine, with the sandboxes that need them',
    answers: { 200: z.strictObject({ images: z.array(imageView) }) },
    handle: async ({ services: { images } }) => json({ images: await images.list() }),
  }),
  route({
    method: 'DELETE',
    path: '/v1/images',
    summary: 'Removes an image that no sandbox needs',
    query: { reference: requiredText('Its name or its id.') },
    answers: { 204: undefined },
    handle: async ({ services: { images }, query }) => {
      await images.remove(query.reference);
      return { type: 'empty' };
    },
  }),
  route({
    method: 'POST',
    path: '/v1/images/look',
    summary: "What a folder's Dockerfile.sallyport asks for, to be approved; does nothing of it",
    body: projectBody,
    answers: { 200: z.strictObject({ dockerfile: dockerfileView.optional() }) },
    handle: async ({ services: { images }, body, signal }) => {
      const dockerfile = await images.look(body, signal);
      return json(dockerfile === undefined ? {} : { dockerfile });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/images/build',
    summary:
      "Builds a folder's Dockerfile.sallyport unless that image is there; closing the stream cancels it",
    body: buildBody,
    answers: { 200: { contentType: 'text/event-stream', description: 'Each data line is a BuildMessage' } },
    handle: ({ services: { images }, body, signal }) => ({
      type: 'events',
      messages: asData(images.build(body, signal)),
    }),
  }),
  route({
    method: 'POST',
    path: '/v1/images/why',
    summary: 'Which inputs of an image are other than at its last build',
    body: projectBody,
    answers: { 200: whyView },
    handle: async ({ services: { images }, body, signal }) => json(await images.why(body, signal)),
  }),
  route({
    method: 'GET',
    path: '/v1/images/log',
    summary: "The output of a folder's last build",
    query: { folder: requiredText('The folder, links followed.') },
    answers: { 200: { contentType: 'text/plain; charset=utf-8', description: 'As the builder wrote it' } },
    handle: ({ services: { images }, query }) => ({
      type: 'text',
      contentType: 'text/plain; charset=utf-8',
      body: images.log(query.folder),
    }),
  }),
  route({
    method: 'POST',
    path: '/v1/images/prune',
    summary:
      'Removes builds that were replaced, those of folders that are gone, and copies of images that are gone',
    body: pruneImagesBody,
    answers: { 200: z.strictObject({ images: z.array(prunedImageView) }) },
    handle: async ({ services: { images }, body }) => json({ images: await images.prune(body.dry_run) }),
  }),
];

async function* asData<T>(messages: AsyncIterable<T>): AsyncGenerator<{ readonly data: T }> {
  for await (const data of messages) yield { data };
}
