ALTER TABLE "change_readers" DROP CONSTRAINT "change_readers_counts";--> statement-breakpoint
ALTER TABLE "connections" DROP CONSTRAINT "connections_schedule";--> statement-breakpoint
ALTER TABLE "change_readers" ADD COLUMN "lag_seconds" double precision;--> statement-breakpoint
ALTER TABLE "change_readers" ADD COLUMN "lag_measured_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "change_readers" ADD CONSTRAINT "change_readers_counts" CHECK ("change_readers"."lag_bytes" >= 0 and "change_readers"."lag_seconds" >= 0 and "change_readers"."failures" >= 0);--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_schedule" CHECK (coalesce("connections"."schedule" ->> 'type', '') in ('manual', 'interval', 'cron', 'continuous'));