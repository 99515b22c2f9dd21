CREATE TABLE "snapshots" (
	"connection_run_id" uuid PRIMARY KEY NOT NULL,
	"generation" integer DEFAULT 1 NOT NULL,
	"snapshot" jsonb,
	"worker_id" uuid,
	"fence" bigint DEFAULT 0 NOT NULL,
	"heartbeat_at" timestamp(3) with time zone,
	"opened_at" timestamp(3) with time zone,
	"is_old" boolean DEFAULT false NOT NULL,
	"error" jsonb,
	"requested_at" timestamp(3) with time zone NOT NULL,
	"publish_requested_at" timestamp(3) with time zone,
	"publishing_at" timestamp(3) with time zone,
	"publish_attempts" integer DEFAULT 0 NOT NULL,
	"publish_error" text,
	"settled_at" timestamp(3) with time zone,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "snapshots_counts" CHECK ("snapshots"."generation" >= 1 and "snapshots"."fence" >= 0 and "snapshots"."publish_attempts" >= 0),
	CONSTRAINT "snapshots_held" CHECK ("snapshots"."snapshot" is null or ("snapshots"."worker_id" is not null and "snapshots"."heartbeat_at" is not null))
);
--> statement-breakpoint
ALTER TABLE "connections" ADD COLUMN "consistency" text DEFAULT 'run' NOT NULL;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD COLUMN "snapshot_generation" integer;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD COLUMN "ready" jsonb;--> statement-breakpoint
ALTER TABLE "snapshots" ADD CONSTRAINT "snapshots_connection_run_id_connection_runs_id_fk" FOREIGN KEY ("connection_run_id") REFERENCES "public"."connection_runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "snapshots_unsettled" ON "snapshots" USING btree ("connection_run_id") WHERE "snapshots"."settled_at" is null;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_consistency_known" CHECK ("connections"."consistency" in ('run', 'stream'));--> statement-breakpoint
ALTER TABLE "stream_runs" ADD CONSTRAINT "stream_runs_ready" CHECK ("stream_runs"."ready" is null or "stream_runs"."status" in ('pending', 'succeeded', 'failed', 'stopped'));