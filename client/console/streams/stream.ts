import type { RouterInputs, RouterOutputs } from '../api.ts';

/** The settings of a stream in a request, without its name. */
export type StreamEdit = Omit<
  NonNullable<RouterInputs['connections']['update']['streams']>[number],
  'name' | 'namespace'
>;

type Known = RouterOutputs['connections']['get']['streams'][number];
export type Stream = Omit<Known, keyof StreamEdit> & {
  [Key in keyof StreamEdit & keyof Known]-?: NonNullable<StreamEdit[Key]> | Known[Key];
};
export type DestinationSyncMode = Stream['destination_sync_mode'];
