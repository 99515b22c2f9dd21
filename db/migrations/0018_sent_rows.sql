ALTER TABLE "delivered_batches" DROP CONSTRAINT "delivered_batches_counts";--> statement-breakpoint
ALTER TABLE "delivered_batches" ADD COLUMN "rows" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "delivered_batches" ADD CONSTRAINT "delivered_batches_counts" CHECK ("delivered_batches"."rows" >= 0 and "delivered_batches"."rejected" >= 0);