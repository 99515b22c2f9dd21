ALTER TABLE "connection_streams" ADD COLUMN "committed_version" bigint;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD COLUMN "attempts_fenced" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "stream_runs_fenced" ON "stream_runs" USING btree ("attempts_fenced") WHERE "stream_runs"."attempts_fenced" > 0;