ALTER TABLE "accounts" ADD COLUMN "suspended_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "suspension_reason" text;--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "max_rows_per_period" bigint;--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "max_live_runs" integer;--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "max_disk_bytes" bigint;--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "max_log_days" integer;--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_limits" CHECK ("accounts"."max_rows_per_period" >= 0 and "accounts"."max_live_runs" >= 0 and "accounts"."max_disk_bytes" >= 0 and "accounts"."max_log_days" >= 1);--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_suspension" CHECK ("accounts"."suspension_reason" is null or "accounts"."suspended_at" is not null);