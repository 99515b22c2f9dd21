ALTER TABLE "tasks" ADD COLUMN "attempts" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "heartbeat_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD COLUMN "worker_id" uuid;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD COLUMN "worker_deaths" integer DEFAULT 0 NOT NULL;